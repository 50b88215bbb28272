"""The paper's own numbers (paper_numbers.json, arXiv 2602.18333), found by cell."""

import dataclasses
import functools
import importlib.resources
import json
from collections.abc import Iterable
from typing import Any

from ib_bench.report.names import modulus_of
from ib_bench.results.record import CellRecord

TITLE = 'On the "Induction Bias" in Sequence Models, arXiv 2602.18333'
BUDGET = "250,000 steps, batch 64, 15 runs a size"
_WIDTH = 256  # of the transformers and of the LSTM of table 3
_INFERRED = "placement inferred"


@dataclasses.dataclass(frozen=True)
class Reference:
    """One number of the paper; values above 1,000 were printed to two digits."""

    value: float | None  # None: not learned
    source: str  # where it stands, and what was inferred
    same_model: bool  # whether the cell's model has the paper's size


@functools.cache
def paper_numbers() -> dict[str, Any]:
    """Returns paper_numbers.json as it is."""
    path = importlib.resources.files("ib_bench.report") / "paper_numbers.json"
    return json.loads(path.read_text())


def find_nstar(cell: CellRecord) -> Reference | None:
    """Returns the paper's N* for a cell's model, task, format, L and distribution."""
    data, numbers = cell.cell["data"], paper_numbers()
    distribution, length = data["length_distribution"], data["max_length"]
    for entry in _fitting(cell, numbers["nstar"]):
        if entry["format"] == data["format"] and length in numbers["lengths"]:
            value = entry[distribution][numbers["lengths"].index(length)]
            return _reference(cell, entry, value)
    for entry in _fitting(cell, numbers["nstar_single"]):
        if entry["length"] != length:
            continue
        if entry.get("format") == data["format"] and distribution in entry:
            return _reference(cell, entry, entry[distribution])
        if "format" not in entry and data["format"] in entry:
            return _reference(cell, entry, entry[data["format"]], "distribution not stated")
    return None


def find_kappa(joint: CellRecord) -> Reference | None:
    """Returns the paper's sharing factor for the model, task and format of a joint cell."""
    for entry in _fitting(joint, paper_numbers()["kappa"]):
        if entry["format"] == joint.cell["data"]["format"]:
            return _reference(joint, entry, entry["kappa"], "L not stated")
    return None


def find_accuracy_at_twice(cell: CellRecord) -> Reference | None:
    """Returns the paper's rescaled accuracy at 2L for a cell."""
    data, numbers = cell.cell["data"], paper_numbers()
    for entry in _fitting(cell, numbers["accuracy_at_twice_the_length"]):
        if entry["format"] == data["format"] and data["max_length"] in numbers["lengths"]:
            place = numbers["lengths"].index(data["max_length"])
            return _reference(cell, entry, entry[data["length_distribution"]][place])
    return None


def _fitting(cell: CellRecord, entries: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yields entries on the cell's kind of model and task; width may differ, depth may not."""
    model, modulus = cell.cell["model"], modulus_of(cell.cell["task"])
    for entry in entries:
        same = entry["model"] == model["name"] and entry["modulus"] == modulus
        if same and entry.get("layers") in (None, model.get("layers")):
            yield entry


def _reference(cell: CellRecord, entry: dict, value: float | None, *notes: str) -> Reference:
    where = [f"{kind} {entry[kind]}" for kind in ("table", "figure") if kind in entry]
    where += [entry["text"]] if "text" in entry else []
    inferred = [_INFERRED] if entry.get("placement") == "inferred" else []
    same_model = cell.cell["model"].get("hidden") == entry.get("hidden", _WIDTH)
    return Reference(value, ", ".join([*where, *inferred, *notes]), same_model)
