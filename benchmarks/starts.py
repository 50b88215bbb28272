"""What the second start of a study saves: compile seconds with an empty and with a filled cache.

    .venv/bin/python -m benchmarks.starts

configs/quick.py in a new workdir each time, the compile cache in a folder of its own.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console

from benchmarks.layouts import STARTS
from benchmarks.output import describe_machine, print_rows, write_json

JSON = flags.DEFINE_string("json", None, "a file for the rows")


def start(cache: str) -> dict[str, Any]:
    """Runs the study from nothing but a compile cache; returns its programs' compile seconds."""
    from ib_bench.results import Store

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ib_bench", "run", "--config=quick"]
        command += [f"--workdir={folder}", f"--config.lanes.compile_cache={cache}"]
        subprocess.run(command, check=True, capture_output=True, env=os.environ)
        cells = Store(folder).cells()
    programs: dict[Any, float] = {}
    for cell in cells:  # cells that share a program have its seconds in common
        program = (cell.cell["model"]["name"], cell.cell["data"]["format"])
        programs[program] = max(programs.get(program, 0.0), cell.seconds.compile)
    return {"programs": len(programs), "compile_seconds": sum(programs.values())}


def main(argv: Sequence[str]) -> None:
    del argv
    with tempfile.TemporaryDirectory() as cache:
        rows = [{"name": name, **start(cache)} for name in ("first", "second")]
    for row in rows:
        row["share"] = row["compile_seconds"] / rows[0]["compile_seconds"]
    print_rows(STARTS, rows, Console(width=110))
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
