"""Where records are: files, written once. Local folders and gs:// alike, through etils.epath.

  <workdir>/probes/<cell key>/<N>.json     <workdir>/cells/<cell key>.json

There are no locks: two writers of one cell come to the same answer.
"""

import logging
import os
import uuid

from etils import epath

from ib_bench.results.record import CellRecord, ProbeRecord, Record, from_json, to_json

logger = logging.getLogger(__name__)


class Store:
    """Reads and writes the records of one workdir."""

    def __init__(self, workdir: str | os.PathLike):
        self.workdir = epath.Path(workdir)

    def prepare(self) -> None:
        """Makes the workdir and proves that it can be written to.

        Raises:
          ValueError: it cannot.
        """
        try:
            self.workdir.mkdir(parents=True, exist_ok=True)
            probe = self.workdir / f".write-test-{uuid.uuid4().hex[:8]}"
            probe.write_text("ok")
            if probe.read_text() != "ok":
                raise OSError("reads back something else")
            probe.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(
                f"workdir: {str(self.workdir)!r} cannot be written to ({reason}); "
                "name a folder that you own with --workdir"
            ) from None

    def probe_path(self, cell_key: str, size: int) -> epath.Path:
        return self.workdir / "probes" / cell_key / f"{size}.json"

    def cell_path(self, cell_key: str) -> epath.Path:
        return self.workdir / "cells" / f"{cell_key}.json"

    def probe(self, cell_key: str, size: int) -> ProbeRecord | None:
        return self._read(ProbeRecord, self.probe_path(cell_key, size))

    def cell(self, cell_key: str) -> CellRecord | None:
        return self._read(CellRecord, self.cell_path(cell_key))

    def cells(self) -> list[CellRecord]:
        """Returns all readable cell records, sorted by key."""
        paths = sorted((self.workdir / "cells").glob("*.json"), key=str)
        return [record for path in paths if (record := self._read(CellRecord, path))]

    def probes(self, cell_key: str) -> list[ProbeRecord]:
        """Returns all readable probe records of a cell, sorted by N."""
        paths = (self.workdir / "probes" / cell_key).glob("*.json")
        records = [record for path in paths if (record := self._read(ProbeRecord, path))]
        return sorted(records, key=lambda record: record.size)

    def write(self, record: Record) -> None:
        """Writes a record, whole or not at all."""
        write_whole(self._path(record), to_json(record))

    def _path(self, record: Record) -> epath.Path:
        if isinstance(record, ProbeRecord):
            return self.probe_path(record.cell_key, record.size)
        return self.cell_path(record.cell_key)

    def _read(self, cls: type, path: epath.Path) -> Record | None:
        try:
            text = path.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            text, reason = None, f"no text: {error.reason}"
        if text is not None:
            try:
                record = from_json(cls, text)
                if path == self._path(record):
                    return record
                reason = f"it holds {self._path(record)} and does not match its own name"
            except ValueError as error:
                reason = str(error)
        self._set_aside(path, reason)
        return None

    def _set_aside(self, path: epath.Path, reason: str) -> None:
        """Keeps a file that cannot be used out of the way of its replacement; never deletes it."""
        relative = "-".join(path.relative_to(self.workdir).parts)
        target = self.workdir / "set_aside" / f"{relative}.{uuid.uuid4().hex[:8]}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        except OSError:
            logger.warning("%s cannot be used: %s; it is left where it is", path, reason)
            return
        logger.warning("%s cannot be used: %s; set aside as %s", path, reason, target)


def write_whole(path: epath.Path, text: str) -> None:
    """Writes a file at once: renamed into place locally, one PUT on object stores."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if "://" in str(path):
        path.write_text(text)
        return
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}"
    try:
        with open(temporary, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
