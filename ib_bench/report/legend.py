"""What N* is worth: in one list its meaning, budget, grid, chance level, versions, devices, cost.

Knows the records, and nothing of how the table above it is laid out.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ib_bench.report.names import column_of, natural_order, task_of, text_of
from ib_bench.results.record import CellRecord

CONTRADICTED = "!"  # marks an entry where a larger size failed than one that was learned
_VERSIONS = ("python", "ib_bench", "jax", "jaxlib", "flax", "optax", "numpy", "chex")


def make_legend(cells: Sequence[CellRecord]) -> Iterable[str]:
    """Says what the numbers mean and what they depend on; where records disagree, every value."""

    def values(group: str, name: str) -> str:
        # Older records lack settings that were added since, each with 0 for "as before".
        return _distinct(text_of(cell.cell[group].get(name, 0)) for cell in cells)

    count = Counter(cell.status for cell in cells)
    yield (
        "N* (a, b]: N* = b is the smallest number of training sequences that was learned, "
        "a the largest below it that failed (0: none failed)."
    )
    yield (
        f"Learned: at least one run reaches validation loss < {values('optim', 'threshold')}; "
        "k/n: so many of all n runs at N* do (only where all went to their end)."
    )
    yield (
        "Not learned: -, with N_max, the largest size that could be tried, and what sets it: the "
        "universe (sequences left for training), the budget (steps x batch size) or a setting. "
        "An empty entry: no finished cell."
    )
    if count["saturated"]:
        yield "Saturated: learned only with every training sequence there is."
    if contradicted := [_describe_contradictions(cell) for cell in cells if cell.contradictions]:
        yield f"{CONTRADICTED} contradictions, a larger size failed: {'; '.join(contradicted)}."
    yield (
        f"Cells: {len(cells)}; {count['learned']} learned, {count['saturated']} saturated, "
        f"{count['not_learned']} not learned."
    )
    yield f"Chance level (best constant guess): {_describe_chance(cells)}."
    yield f"Models: {_describe_models(cells)}."
    yield (
        f"Budget: {values('optim', 'steps')} steps, batch {values('optim', 'batch_size')}. "
        f"Validation: {_range(cell.num_validation for cell in cells)} sequences."
    )
    if any(cell.cell["optim"].get("stall") for cell in cells):
        yield (
            f"Stalled: a run whose training loss is below the threshold ends "
            f"{values('optim', 'stall')} steps (0: never) after its best validation loss, and "
            "counts as not solved."
        )
    yield (
        f"Grid: learning rates {values('grid', 'learning_rates')} x "
        f"seeds {values('grid', 'seeds')}; runs a size: "
        f"{_distinct(str(probe.runs) for cell in cells for probe in cell.probes)}."
    )
    yield f"Search: {_distinct(_describe_search(cell) for cell in cells)}."
    yield (
        f"Protocol: version {_distinct(str(cell.protocol) for cell in cells)}. "
        f"Commit: {_environment(cells, 'commit')}."
    )
    yield f"Versions: {', '.join(f'{name} {_environment(cells, name)}' for name in _VERSIONS)}."
    yield f"Devices: {_distinct(_describe_device(cell) for cell in cells)}."
    yield _describe_cost(cells)


def _distinct(values: Iterable[str]) -> str:
    return " or ".join(sorted(sorted(set(values)), key=natural_order)) or "unknown"


def _range(values: Iterable[float]) -> str:
    """Writes the smallest and the largest value, or the one there is."""
    values = sorted(values)
    ends = [
        f"{end:.3g}" if isinstance(end, float) else str(end) for end in values[:1] + values[-1:]
    ]
    return " to ".join(dict.fromkeys(ends)) or "unknown"


def _describe_contradictions(cell: CellRecord) -> str:
    name = f"{cell.cell['model']['name']} {cell.cell['data']['format']} {task_of(cell)}"
    pairs = ", ".join(
        f"{learned} learned, {failed} failed" for learned, failed in cell.contradictions
    )
    return f"{name} {column_of(cell).label}: {pairs}"


def _describe_chance(cells: Sequence[CellRecord]) -> str:
    levels = defaultdict(list)
    for cell in cells:
        levels[task_of(cell)] += map(float, cell.chance)
    return ", ".join(f"{task}: {_range(some)}" for task, some in levels.items()) or "unknown"


def _describe_models(cells: Sequence[CellRecord]) -> str:
    sizes = defaultdict(list)
    for cell in cells:
        model = dict(cell.cell["model"])
        label = [model.pop("name"), *(f"{key} {text_of(value)}" for key, value in model.items())]
        sizes[" ".join(label)].append(cell.parameters)
    return "; ".join(f"{label}, {_range(some)} parameters" for label, some in sizes.items())


def _describe_search(cell: CellRecord) -> str:
    search = cell.search
    return f"{search.get('policy', 'unknown')}, tolerance {text_of(search.get('tolerance', '?'))}"


def _environment(cells: Sequence[CellRecord], name: str) -> str:
    return _distinct(str(cell.environment.get(name, "unknown")) for cell in cells)


def _describe_device(cell: CellRecord) -> str:
    get = cell.environment.get
    lanes = get("per_device", "?")
    return (
        f"{get('num_devices', '?')} x {get('device', 'unknown')} ({get('platform', '?')}; "
        f"{get('strategy', '?')}, {lanes} {'lane' if lanes == 1 else 'lanes'} each)"
    )


def _describe_cost(cells: Sequence[CellRecord]) -> str:
    steps = [cell.lane_steps for cell in cells]
    useful, cancelled = sum(one.useful for one in steps), sum(one.cancelled for one in steps)
    total = sum(one.total for one in steps)
    idle = total - useful - cancelled
    shares = [f"{100 * part / max(1, total):.0f} %" for part in (useful, cancelled, idle)]
    # Every cell of a program bears the seconds of its one compilation: count those once.
    compiled = {(_program(cell), cell.seconds.compile) for cell in cells}
    return (
        f"Cost: {total} lane-steps: {shares[0]} useful, {shares[1]} cancelled, {shares[2]} idle; "
        f"{sum(seconds for _, seconds in compiled):.0f} s compiling, "
        f"{sum(cell.seconds.run for cell in cells):.0f} s running."
    )


def _program(cell: CellRecord) -> str:
    data = cell.cell["data"]
    padding = {key: data[key] for key in data if key.startswith("padded_")}
    return json.dumps([cell.cell["model"], data["format"], padding, cell.cell["optim"]])
