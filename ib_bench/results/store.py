"""Where records are: files, written once. Local folders and gs:// alike, through etils.epath.

  <workdir>/probes/<cell key>/<N>.json     the runs of one N
  <workdir>/cells/<cell key>.json          the answer of a cell
  <workdir>/failures/<cell key>.json       what a cell raised, until it is answered

There are no locks: two writers of one cell come to the same answer.
"""

import logging
import os
import uuid

from etils import epath

from ib_bench.files import write_whole
from ib_bench.results.record import (
    CellRecord,
    FailureRecord,
    ProbeRecord,
    Record,
    from_json,
    to_json,
)

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

    def failure_path(self, cell_key: str) -> epath.Path:
        return self.workdir / "failures" / f"{cell_key}.json"

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

    def failures(self) -> list[FailureRecord]:
        """Returns the readable records of cells that failed and have no answer, sorted by key."""
        paths = sorted((self.workdir / "failures").glob("*.json"), key=str)
        return [record for path in paths if (record := self._read(FailureRecord, path))]

    def write(self, record: Record) -> None:
        """Writes a record, whole or not at all; an answer ends its cell's failure."""
        write_whole(self._path(record), to_json(record))
        if isinstance(record, CellRecord):
            self.failure_path(record.cell_key).unlink(missing_ok=True)

    def _path(self, record: Record) -> epath.Path:
        if isinstance(record, ProbeRecord):
            return self.probe_path(record.cell_key, record.size)
        if isinstance(record, FailureRecord):
            return self.failure_path(record.cell_key)
        return self.cell_path(record.cell_key)

    def _read(self, cls: type, path: epath.Path) -> Record | None:
        text = self._text(path)
        if text is None:
            return None
        try:
            record = from_json(cls, text)
            if path == self._path(record):
                return record
            reason = f"it holds {self._path(record)} and does not match its own name"
        except ValueError as error:
            reason = str(error)
        self._set_aside(path, reason)
        return None

    def _text(self, path: epath.Path) -> str | None:
        """What a file holds, None where there is none; bytes that are no text make no JSON."""
        try:
            return path.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError:
            return ""

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
