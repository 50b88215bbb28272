"""Checkpoints of the lanes (orbax) with the scheduler's state beside them. Knows no search.

  <folder>/<owner>/cells.json     what the owner works on
  <folder>/<owner>/<number>/      its newest checkpoint, written whole

Every process owns what it writes: two that work on the same cells, on purpose or by mistake, do not
write into each other's files. Whoever starts reads the checkpoints of all owners. Processes that
run in step are one owner, and all read what process 0 finds.
"""

import json
import logging
import os
import uuid
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orbax.checkpoint as ocp
from etils import epath

from ib_bench.files import write_whole
from ib_bench.training import processes

logger = logging.getLogger(__name__)

# What orbax and the storage below it raise for a full disk, a vanished folder, a broken file.
_STORAGE_ERRORS = (OSError, ValueError, KeyError, TypeError, RuntimeError)


class Saved(NamedTuple):
    """A checkpoint that can be read."""

    path: epath.Path
    scheduler: dict[str, Any]


class Owner(NamedTuple):
    """What a process left in the folder, or is writing there now."""

    cells: frozenset[str]  # empty where that cannot be read
    newest: int  # number of its newest checkpoint; 0 where there is none


class Checkpoints:
    """The checkpoints of one program's lanes."""

    def __init__(self, folder: str | os.PathLike, cells: Iterable[str]):
        """Looks at a folder; writes nothing yet.

        Args:
          folder: of this program, shared by all processes.
          cells: keys of the cells that this process works on.
        """
        folder = epath.Path(folder)
        # Orbax takes no relative path, and a path of an object store is none.
        self._folder = folder if "://" in str(folder) else folder.resolve()
        self._name = processes.from_first(uuid.uuid4().hex[:8])
        self._cells = frozenset(cells)
        self._number = max((owner.newest for owner in self._owners().values()), default=0)
        # Orbax counts its own steps at length; a study has its own log.
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._orbax = ocp.Checkpointer(ocp.CompositeCheckpointHandler())

    def save(self, lanes: Any, scheduler: dict[str, Any]) -> None:
        """Writes host arrays (a pytree) and plain JSON, both or neither.

        Replaces this process's checkpoint and those of others that worked on nothing else. A
        storage that takes none costs a warning: no record depends on it.
        """
        own = self._folder / self._name
        path = own / str(self._number + 1)
        items = ocp.args.Composite(
            lanes=ocp.args.StandardSave(lanes), scheduler=ocp.args.JsonSave(scheduler)
        )
        failed = False
        try:
            if processes.index() == 0:
                write_whole(own / "cells.json", json.dumps(sorted(self._cells)))
            self._orbax.save(path, args=items)
        except _STORAGE_ERRORS as error:
            failed = True
            logger.warning(
                "checkpoint %s cannot be written (%s); after a stop, runs that are under way now "
                "start again",
                path,
                _reason(error),
            )
        self._number += 1
        failed = processes.any_of(failed)
        if processes.index():
            return
        if failed:  # what of it was written may be what fills the disk
            for remains in own.glob(f"{path.name}*"):
                _remove(remains)
            return
        for old in own.glob("*"):
            if old.name not in ("cells.json", path.name):
                _remove(old)
        for name, owner in self._look().items():
            if name != self._name and owner.cells <= self._cells:
                _remove(self._folder / name)

    def load(self) -> list[Saved]:
        """Returns the newest checkpoint of every owner that shares cells, newest first."""
        found = []
        for name, owner in self._owners().items():
            if not owner.newest or not owner.cells & self._cells:
                continue
            path = self._folder / name / str(owner.newest)
            wanted = ocp.args.Composite(scheduler=ocp.args.JsonRestore())
            scheduler = self._restored(path, wanted, "scheduler")
            if scheduler is not None:
                found.append((owner.newest, name, Saved(path, scheduler)))
        return [saved for *_, saved in sorted(found, key=lambda item: item[:2], reverse=True)]

    def lanes(self, saved: Saved, shapes: Any) -> Any | None:
        """Reads the lanes of a checkpoint; None where they cannot be read."""
        wanted = ocp.args.Composite(lanes=ocp.args.StandardRestore(shapes))
        return self._restored(saved.path, wanted, "lanes")

    def remove(self, is_done: Callable[[str], bool]) -> None:
        """Deletes what nobody needs any more, now that the cells of this process are done.

        Args:
          is_done: tells whether a cell, of another process perhaps, is done.
        """
        for name, owner in self._owners().items():
            needed = any(not is_done(cell) for cell in sorted(owner.cells - self._cells))
            if not needed and processes.index() == 0:
                _remove(self._folder / name)
        if processes.index() == 0 and not any(self._folder.glob("*")):
            _remove(self._folder)

    def _owners(self) -> dict[str, Owner]:
        """All owners, as process 0 finds them."""
        found = self._look() if processes.index() == 0 else {}
        plain = {name: [sorted(owner.cells), owner.newest] for name, owner in found.items()}
        shared = processes.from_first(plain)
        return {name: Owner(frozenset(cells), newest) for name, (cells, newest) in shared.items()}

    def _look(self) -> dict[str, Owner]:
        found = {}
        for folder in sorted(self._folder.glob("*"), key=str):
            try:
                cells = frozenset(json.loads((folder / "cells.json").read_text()))
            except (OSError, ValueError, TypeError):
                cells = frozenset()
            # Other names are those of checkpoints that are, or were, being written.
            numbers = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
            found[folder.name] = Owner(cells, max(numbers, default=0))
        return found

    def _restored(self, path: epath.Path, wanted: ocp.args.Composite, item: str) -> Any | None:
        restored = None
        try:
            restored = self._orbax.restore(path, args=wanted)[item]
        except _STORAGE_ERRORS as error:
            if path.exists():  # otherwise its owner has written the next one meanwhile
                logger.warning(
                    "checkpoint %s cannot be read (%s); runs that were under way start again",
                    path,
                    _reason(error),
                )
        return None if processes.any_of(restored is None) else restored


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _remove(path: epath.Path) -> None:
    """Deletes a folder or a file; another process may be at the same."""
    try:
        if path.is_dir():
            path.rmtree()
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        if path.exists():
            logger.warning("%s cannot be deleted (%s)", path, _reason(error))
