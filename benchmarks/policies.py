"""What each search policy spends on synthetic cells, where no run is trained.

    .venv/bin/python -m benchmarks.policies

400 cells whose N* is log-uniform in 5 to 5 million, each searched to 5 %; a failed probe costs 50
learned ones. Takes no measurable time and comes out the same on every machine.
"""

from collections.abc import Sequence

from absl import app, flags
from rich.console import Console

from benchmarks.layouts import POLICIES
from benchmarks.output import describe_machine, print_rows, write_json
from benchmarks.synthetic import compare

JSON = flags.DEFINE_string("json", None, "a file for the rows")


def main(argv: Sequence[str]) -> None:
    del argv
    rows = compare(("paper", "cost_aware"), num_cells=400)
    print_rows(POLICIES, rows, Console(width=110))
    if JSON.value:
        write_json(JSON.value, describe_machine(), rows)


if __name__ == "__main__":
    app.run(main)
