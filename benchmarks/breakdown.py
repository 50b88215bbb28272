"""Where the time of a chunk goes, by model: `ib_bench run --profile_dir` on one size of one cell.

    .venv/bin/python -m benchmarks.breakdown

Modular addition with m = 5, L = 5, N = 1,000, the whole validation set, 250 steps a chunk, a run on
every core. One chunk a model; the shares of a chunk sum to 1.
"""

import json
import pathlib
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from absl import app, flags
from rich.console import Console

from benchmarks.cells import run_command
from benchmarks.layouts import BREAKDOWN
from benchmarks.output import describe_machine, print_rows, write_json

JSON = flags.DEFINE_string("json", None, "a file for the rows")

MODELS = (
    *({"name": "lstm", "hidden": hidden} for hidden in (32, 64, 256)),
    *({"name": "dense_ssm", "hidden": hidden} for hidden in (32, 64)),
    {"name": "transformer", "hidden": 64, "layers": 2, "heads": 2},
)


def profile(model: dict[str, Any]) -> dict[str, Any]:
    """Returns the shares of a chunk."""
    keys = {
        "task.modulus": 5,
        "optim.steps": 750,
        "grid.learning_rates": "(1e-3,)",
        "search.policy": "grid",
        "search.sizes": "(1000,)",
        **{f"model.{key}": value for key, value in model.items()},
    }
    with tempfile.TemporaryDirectory() as folder:
        command = run_command(f"{folder}/work", keys)
        subprocess.run(
            [*command, f"--profile_dir={folder}/profile"], check=True, capture_output=True
        )
        (path,) = pathlib.Path(folder).glob("profile/*/breakdown.json")
        shares = json.loads(path.read_text())
    layers = f" x {model['layers']}" if "layers" in model else ""
    return {"name": f"{model['name']} {model['hidden']}{layers}", **shares}


def main(argv: Sequence[str]) -> None:
    del argv
    rows = [profile(model) for model in MODELS]
    print_rows(BREAKDOWN, rows, Console(width=110))
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
