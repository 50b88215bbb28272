"""Shares the cores of a machine between workers that know nothing of each other."""

import fcntl
import io
import os
import pathlib
import tempfile


def own_core() -> io.TextIOBase | None:
    """Pins this process to a core that no other worker on this machine has.

    Returns:
      The open file that stands for the core: closing it, or the end of the process however it
      comes, gives the core back. None where all are taken; nothing is pinned then.
    """
    folder = pathlib.Path(tempfile.gettempdir()) / f"ib_bench-cores-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for core in sorted(os.sched_getaffinity(0)):
        file = open(folder / str(core), "w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        os.sched_setaffinity(0, {core})
        return file
    return None
