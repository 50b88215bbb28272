"""Outcomes stay what they were: faster code, the same verdicts, steps and losses.

`outcomes.json` was written by commit c35921b, before the work on speed. It changes only together
with PROTOCOL_VERSION: `PYTHONPATH=. python tests/executors/test_outcomes.py` writes it anew.
"""

import json
import pathlib
import tempfile

import pytest

from benchmarks.cells import make_study
from ib_bench.executors.local import run_study
from ib_bench.results import Store
from ib_bench.training.devices import keep_compiled, use_every_core

EXPECTED = pathlib.Path(__file__).with_suffix("").with_name("outcomes.json")

SMALL = {"optim__eval_every": 100, "grid__learning_rates": (3e-3, 1e-3), "grid__seeds": (10, 20)}
STUDIES = {
    # Sets of 16 rows, of 32 and of whole batches.
    "dense_ssm": {
        "model__name": "dense_ssm",
        "model__hidden": 32,
        "task__modulus": (2, 3),
        "data__padded_symbols": (3,),
        "optim__steps": 1000,
    },
    "lstm": {
        "model__name": "lstm",
        "model__hidden": 32,
        "data__format": "acot",
        "optim__steps": 1500,
    },
    # Epochs of three steps and of seven, whose last batch is not full.
    "transformer": {
        "model__name": "transformer",
        "model__hidden": 32,
        "model__layers": 1,
        "model__heads": 2,
        "task__modulus": 3,
        "data__format": "cot",
        "data__length_distribution": "fixed",
        "optim__steps": 500,
        "optim__threshold": 0.02,
        "search__policy": "grid",
        "search__sizes": (150, 50),
    },
}


def outcomes_of(keys, workdir):
    """Runs a study; returns each cell's answer and every run that came to an end of its own."""
    store = Store(workdir)
    store.prepare()
    run_study(make_study(**SMALL, **keys), store, lambda chunk: None, lambda: False)
    found = {}
    for cell in store.cells():
        probes = [store.probe(cell.cell_key, summary.size) for summary in cell.probes]
        runs = [
            (probe.size, run)
            for probe in probes
            for run in probe.runs
            if run.outcome != "cancelled"
        ]
        label, _ = cell.cell_key.rsplit("_", 1)  # a new setting changes the hash, not the outcome
        found[label] = {
            "answer": [cell.status, cell.nstar, cell.largest_failed],
            "verdicts": [[probe.size, probe.verdict] for probe in probes],
            "runs": [
                [size, run.learning_rate, run.seed, run.outcome, run.steps, run.best_step]
                for size, run in runs
            ],
            "losses": [run.best_loss for _, run in runs],
        }
    return found


@pytest.mark.parametrize("name", STUDIES)
def test_outcomes_are_what_they_were(name, tmp_path):
    expected = json.loads(EXPECTED.read_text())[name]
    found = outcomes_of(STUDIES[name], tmp_path)
    for cell in expected.values():
        cell["losses"] = pytest.approx(cell["losses"], rel=0.05)  # rounding grows as a run trains
    assert found == expected


def _write() -> None:
    use_every_core(2)
    keep_compiled("auto")
    found = {}
    for name, keys in STUDIES.items():
        with tempfile.TemporaryDirectory() as workdir:
            found[name] = outcomes_of(keys, workdir)
    EXPECTED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    _write()
