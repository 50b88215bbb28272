"""The N* table as the paper lays it out: markdown, CSV and terminal, from cell records alone.

A row shares every setting but the sequence length and its distribution. Settings that differ among
the records are named in the row's label, so no two records ever share an entry.
"""

import csv
import dataclasses
import io
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import rich.box
import rich.table
from etils import epath
from rich.console import Console
from rich.text import Text

from ib_bench.results.record import CellRecord, ProbeSummary
from ib_bench.results.store import Store, write_whole

_DISTRIBUTIONS = ("fixed", "uniform", "short_to_long")  # the paper's order, table 1
_FORMATS = ("outcome", "cot", "acot")
_LABELS = ("model", "format", "task")
# What a row's records must share. Of the rest, padding and the task's table follow from the column
# and the task; they are looked at only where two records would meet in one entry.
_SHARED = ("model.", "optim.", "grid.", "data.validation_lengths")
_VERSIONS = ("python", "ib_bench", "jax", "jaxlib", "flax", "optax", "numpy", "chex")
_CONTRADICTED = "!"


@dataclasses.dataclass(frozen=True)
class Column:
    distribution: str
    max_length: int

    @property
    def label(self) -> str:
        return f"{self.distribution} L={self.max_length}"


@dataclasses.dataclass(frozen=True)
class Row:
    model: str  # with the settings that tell it from other rows
    format: str
    task: str
    entries: tuple[str, ...]  # one a column; "": no finished cell

    @property
    def labels(self) -> tuple[str, str, str]:
        return self.model, self.format, self.task


@dataclasses.dataclass(frozen=True)
class Table:
    """N* of every cell, and in the legend what N* is worth: a result is never without it."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    legend: tuple[str, ...]


def nstar_table(cells: Sequence[CellRecord]) -> Table:
    """Lays out N*: model x format x task against length distribution x L (paper, table 1).

    Every record is in exactly one entry.
    """
    cells = sorted(cells, key=_order)
    columns = tuple(dict.fromkeys(_column(cell) for cell in sorted(cells, key=_column_order)))
    rows = []
    for label, members in _label_rows(cells):
        entries = {_column(cell): _entry(cell) for cell in members}
        texts = tuple(entries.get(column, "") for column in columns)
        rows.append(Row(label, members[0].cell["data"]["format"], _task(members[0]), texts))
    return Table(columns, tuple(rows), tuple(_legend(cells)))


# --- rows, columns, entries ---------------------------------------------------------------------


def _column(cell: CellRecord) -> Column:
    return Column(cell.cell["data"]["length_distribution"], cell.cell["data"]["max_length"])


def _column_order(cell: CellRecord) -> tuple:
    column = _column(cell)
    return _place(column.distribution, _DISTRIBUTIONS), column.max_length


def _order(cell: CellRecord) -> tuple:
    """Sorts by row, then column; m = 5 comes before m = 10, and other tasks after both."""
    task = cell.cell["task"]
    modulus = _modulus(task)
    return (
        cell.cell["model"]["name"],
        _place(cell.cell["data"]["format"], _FORMATS),
        (modulus is None, modulus or 0, _natural(task)),
        _natural(json.dumps([cell.cell["model"], cell.cell["optim"], cell.cell["grid"]])),
        _column_order(cell),
        cell.cell_key,
    )


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order)), name


def _natural(text: str) -> list:
    """A sort key by which "hidden 64" comes before "hidden 128"."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def _modulus(task: str) -> int | None:
    match = re.fullmatch(r"modular_addition\(([0-9]+)\)", task)
    return int(match[1]) if match else None


def _task(cell: CellRecord) -> str:
    modulus = _modulus(cell.cell["task"])
    return cell.cell["task"] if modulus is None else f"m = {modulus}"


def _settings(cell: CellRecord) -> dict[str, str]:
    """Every setting as text, under its dotted key."""
    groups = {**cell.cell, "search": cell.search}
    flat = {}
    for group, values in groups.items():
        for key, value in values.items() if isinstance(values, dict) else [("", values)]:
            flat[f"{group}.{key}".rstrip(".")] = _value(value)
    return flat


def _value(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _label_rows(cells: Sequence[CellRecord]) -> Iterable[tuple[str, list[CellRecord]]]:
    """Groups records into rows, each with its model's label."""
    settings = [_settings(cell) for cell in cells]
    values = defaultdict(set)
    for one in settings:
        for name, value in one.items():
            if name.startswith(_SHARED):
                values[_scope(name, one), name].add(value)
    rows = defaultdict(list)
    for cell, one in zip(cells, settings, strict=True):
        telling = tuple(name for name in one if len(values[_scope(name, one), name]) > 1)
        row = (cell.cell["model"]["name"], cell.cell["data"]["format"], cell.cell["task"])
        rows[row, tuple((name, one[name]) for name in telling)].append(cell)
    for ((model, *_), telling), members in rows.items():
        for more, part in _split(members):
            notes = ", ".join(f"{name.split('.')[-1]}={value}" for name, value in telling + more)
            yield (f"{model} ({notes})" if notes else model), part


def _scope(name: str, settings: dict[str, str]) -> str:
    """A model's settings are compared with those of its namesakes, all others with everyone's."""
    return settings["model.name"] if name.startswith("model.") else ""


def _split(cells: Sequence[CellRecord]) -> Iterable[tuple[tuple, list[CellRecord]]]:
    """Splits the records of one row by what differs between any two that share a column."""
    names = []
    facts = [
        _settings(cell) | {"record": str(number)} for number, cell in enumerate(cells, start=1)
    ]
    while True:
        parts, clash = defaultdict(list), None
        for cell, fact in zip(cells, facts, strict=True):
            part = parts[tuple((name, fact.get(name, "")) for name in names)]
            clash = clash or next(
                ((other, fact) for seen, other in part if _column(seen) == _column(cell)), None
            )
            part.append((cell, fact))
        if clash is None:
            return [(key, [cell for cell, _ in part]) for key, part in parts.items()]
        one, other = clash
        differing = [name for name in one | other if one.get(name) != other.get(name)]
        names += differing[:-1] or ["record"]  # the last one is always "record"


def _entry(cell: CellRecord) -> str:
    if cell.nstar is None:
        parts = [f"- (N_max {_short(cell.max_size)}, {cell.limited_by})"]
    else:
        parts = [_short(cell.nstar), f"({cell.largest_failed}, {cell.nstar}]"]
        probe = _probe_at_nstar(cell)
        if cell.confirmed and probe:
            parts.append(f"{probe.solved}/{probe.runs}")
        if cell.status == "saturated":
            parts.append("saturated")
    if cell.contradictions:
        parts.append(_CONTRADICTED)
    return " ".join(parts)


def _probe_at_nstar(cell: CellRecord) -> ProbeSummary | None:
    return next((probe for probe in cell.probes if probe.size == cell.nstar), None)


def _short(number: int) -> str:
    """Writes a size as the paper does: 14, 1.3K, 16K, 2M."""
    if number < 1000:
        return str(number)
    rounded = int(float(f"{number:.1e}"))
    unit, suffix = (10**6, "M") if rounded >= 10**6 else (10**3, "K")
    return f"{rounded / unit:g}{suffix}"


# --- legend -------------------------------------------------------------------------------------


def _legend(cells: Sequence[CellRecord]) -> Iterable[str]:
    """Says what the numbers mean and what they depend on; where records disagree, every value."""

    def values(group: str, name: str) -> str:
        return _distinct(_value(cell.cell[group][name]) for cell in cells)

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
        yield f"{_CONTRADICTED} contradictions, a larger size failed: {'; '.join(contradicted)}."
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
    return " or ".join(sorted(sorted(set(values)), key=_natural)) or "unknown"


def _range(values: Iterable[float]) -> str:
    """Writes the smallest and the largest value, or the one there is."""
    values = sorted(values)
    ends = [
        f"{end:.3g}" if isinstance(end, float) else str(end) for end in values[:1] + values[-1:]
    ]
    return " to ".join(dict.fromkeys(ends)) or "unknown"


def _describe_contradictions(cell: CellRecord) -> str:
    name = f"{cell.cell['model']['name']} {cell.cell['data']['format']} {_task(cell)}"
    pairs = ", ".join(
        f"{learned} learned, {failed} failed" for learned, failed in cell.contradictions
    )
    return f"{name} {_column(cell).label}: {pairs}"


def _describe_chance(cells: Sequence[CellRecord]) -> str:
    levels = defaultdict(list)
    for cell in cells:
        levels[_task(cell)] += map(float, cell.chance)
    return ", ".join(f"{task}: {_range(some)}" for task, some in levels.items()) or "unknown"


def _describe_models(cells: Sequence[CellRecord]) -> str:
    sizes = defaultdict(list)
    for cell in cells:
        model = dict(cell.cell["model"])
        label = [model.pop("name"), *(f"{key} {_value(value)}" for key, value in model.items())]
        sizes[" ".join(label)].append(cell.parameters)
    return "; ".join(f"{label}, {_range(some)} parameters" for label, some in sizes.items())


def _describe_search(cell: CellRecord) -> str:
    search = cell.search
    return f"{search.get('policy', 'unknown')}, tolerance {_value(search.get('tolerance', '?'))}"


def _environment(cells: Sequence[CellRecord], name: str) -> str:
    return _distinct(str(cell.environment.get(name, "unknown")) for cell in cells)


def _describe_device(cell: CellRecord) -> str:
    get = cell.environment.get
    return (
        f"{get('num_devices', '?')} x {get('device', 'unknown')} "
        f"({get('platform', '?')}; {get('strategy', '?')}, {get('per_device', '?')} lanes each)"
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


# --- out ----------------------------------------------------------------------------------------


def to_markdown(table: Table) -> str:
    """Writes a GitHub table, and the legend as a list below it."""
    header = [*_LABELS, *(column.label for column in table.columns)]
    lines = [header, ["---"] * len(header)]
    lines += [[_plain(text) for text in (*row.labels, *row.entries)] for row in table.rows]
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([*rows, "", *(f"- {_plain(line)}" for line in table.legend)]) + "\n"


def _plain(text: str) -> str:
    """Escapes what markdown would read as markup; underscores inside words are none."""
    return re.sub(r"([\\`*<&\[|~#]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))


def print_table(table: Table, console: Console) -> None:
    """Prints the table: whole where it fits the console, else in parts, one a distribution."""
    unbounded = console.options.update(width=10**6)

    def fits(terminal: rich.table.Table) -> bool:
        return console.measure(terminal, options=unbounded).maximum <= console.width

    whole = _terminal_table(table)
    if fits(whole):
        console.print(whole)
    else:
        parts = [_part_of(table, name) for name in _distributions(table)]
        wrap = not all(fits(_terminal_table(part)) for part in parts)
        for part in parts:
            console.print(_terminal_table(part, wrap))
    for line in table.legend:
        console.print(Text(line, style="dim"))


def _distributions(table: Table) -> list[str]:
    return list(dict.fromkeys(column.distribution for column in table.columns))


def _part_of(table: Table, distribution: str) -> Table:
    """Returns the columns of one distribution, and the rows that have an entry there."""
    chosen = [k for k, column in enumerate(table.columns) if column.distribution == distribution]
    rows = [
        dataclasses.replace(row, entries=tuple(row.entries[k] for k in chosen))
        for row in table.rows
        if any(row.entries[k] for k in chosen)
    ]
    return Table(tuple(table.columns[k] for k in chosen), tuple(rows), table.legend)


def _terminal_table(table: Table, wrap: bool = False) -> rich.table.Table:
    """Makes all strings `Text`, so nothing in a record is markup; `wrap`: brackets below N*."""
    terminal = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    for label in _LABELS:
        terminal.add_column(Text(label), overflow="fold")
    for column in table.columns:
        terminal.add_column(Text(f"{column.distribution}\nL={column.max_length}"), overflow="fold")
    for row in table.rows:
        entries = (entry.replace(" (", "\n(", 1) if wrap else entry for entry in row.entries)
        terminal.add_row(*(Text(text) for text in (*row.labels, *entries)))
    return terminal


def to_csv(cells: Sequence[CellRecord]) -> str:
    """Writes one row a cell, all of its settings and numbers spelled out; "" where there is none.

    Lists are separated by spaces; a contradiction is "learned:failed".
    """
    settings = sorted({key for cell in cells for key in cell.cell["model"]} - {"name"})
    rows = [_csv_row(cell, settings) for cell in sorted(cells, key=_order)]
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0] if rows else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _csv_row(cell: CellRecord, model_settings: Sequence[str]) -> dict[str, Any]:
    data, model = cell.cell["data"], cell.cell["model"]
    optim, grid = cell.cell["optim"], cell.cell["grid"]
    probe, low = _probe_at_nstar(cell), cell.largest_failed
    width = f"{cell.nstar / low - 1:.4g}" if cell.nstar and low else ""
    return {
        "cell_key": cell.cell_key,
        "model": model["name"],
        **{f"model.{key}": _value(model.get(key, "")) for key in model_settings},
        "task": cell.cell["task"],
        "modulus": _modulus(cell.cell["task"]),
        "format": data["format"],
        "length_distribution": data["length_distribution"],
        "max_length": data["max_length"],
        "status": cell.status,
        "nstar": cell.nstar,
        "largest_failed": low,
        "max_size": cell.max_size,
        "limited_by": cell.limited_by,
        "relative_width": width,  # of the bracket: N* / largest failed - 1
        "solved": probe and probe.solved,
        "runs": probe and probe.runs,
        "confirmed": cell.confirmed,
        "num_probes": len(cell.probes),
        "num_failed_probes": sum(one.verdict == "failed" for one in cell.probes),
        "contradictions": " ".join(f"{low}:{high}" for low, high in cell.contradictions),
        "chance_at_L": cell.chance[-1] if cell.chance else None,
        "num_validation": cell.num_validation,
        "parameters": cell.parameters,
        "steps": optim["steps"],
        "batch_size": optim["batch_size"],
        "threshold": optim["threshold"],
        "learning_rates": _value(grid["learning_rates"]),
        "seeds": _value(grid["seeds"]),
        "policy": cell.search.get("policy"),
        "tolerance": cell.search.get("tolerance"),
        "protocol": cell.protocol,
        "table": cell.cell["table"],
        "useful_lane_steps": cell.lane_steps.useful,
        "cancelled_lane_steps": cell.lane_steps.cancelled,
        "total_lane_steps": cell.lane_steps.total,
        "compile_seconds": cell.seconds.compile,
        "run_seconds": cell.seconds.run,
        "device": cell.environment.get("device"),
        "jax": cell.environment.get("jax"),
        "commit": cell.environment.get("commit"),
    }


def finished_cells(store: Store) -> list[CellRecord]:
    """Returns the records of a store's finished cells, of which a report needs at least one.

    Raises:
      ValueError: there is none.
    """
    cells = store.cells()
    if not cells:
        raise ValueError(
            f"workdir: {str(store.workdir)!r} holds no finished cells; "
            f"run `ib_bench run --config=... --workdir={store.workdir}` first"
        )
    return cells


def write_report(store: Store, directory: str | os.PathLike) -> list[epath.Path]:
    """Writes nstar.md and nstar.csv from a store's finished cells; returns their paths.

    Raises:
      ValueError: there is none.
    """
    cells = finished_cells(store)
    texts = {"nstar.md": to_markdown(nstar_table(cells)), "nstar.csv": to_csv(cells)}
    paths = [epath.Path(directory) / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, text)
    return paths
