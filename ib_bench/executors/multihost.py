"""The store of processes that run in step: process 0 reads and writes, all see what it sees."""

import os

from etils import epath

from ib_bench.results import Store
from ib_bench.results.record import Record
from ib_bench.training import processes


class StoreInStep(Store):
    """A store whose files one process touches; every process makes the same calls."""

    def __init__(self, workdir: str | os.PathLike):
        super().__init__(workdir)
        self._is_first = processes.index() == 0

    def prepare(self) -> None:
        error = None
        if self._is_first:
            try:
                super().prepare()
            except ValueError as refused:
                error = str(refused)
        if error := processes.from_first(error):
            raise ValueError(error)

    def write(self, record: Record) -> None:
        if self._is_first:
            super().write(record)

    def _text(self, path: epath.Path) -> str | None:
        return processes.from_first(super()._text(path) if self._is_first else None)

    def _set_aside(self, path: epath.Path, reason: str) -> None:
        if self._is_first:
            super()._set_aside(path, reason)
