"""Figures as Altair charts, from records alone; the only file that imports Altair or vl-convert.

Each holds what the paper's figures 2 to 9 are known to show: N* against length, sharing factors,
accuracy beyond the training lengths, success against N. Records hold no trajectory of a run, so in
place of learning curves stands how many steps the fastest solved run of a size took.
"""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from ib_bench.metrics import Bounds, Sharing, SuccessCurve, accuracy_at_twice, success_curve
from ib_bench.report.names import DISTRIBUTIONS, FORMATS, task_of
from ib_bench.report.study import Study
from ib_bench.results.record import CellRecord, ProbeRecord

# Okabe and Ito's colours, told apart by colour-blind readers; they hold on light and dark grounds.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#B8A100")
MOST_CURVES = 24  # cells whose success curves are drawn
_ROWS = alt.NamedData("rows")  # replaced by `_figure`: Altair would check every row by itself
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_UNIT = alt.Scale(domain=[0, 1])
_WIDTH, _HEIGHT = 190, 140  # of a panel, pixels


@dataclasses.dataclass(frozen=True)
class Figure:
    name: str  # of its file
    title: str
    note: str  # how to read it, and what it leaves out
    spec: dict[str, Any]  # Vega-Lite, data included
    task: str = ""  # of a figure that shows one task alone


def make_figures(study: Study, sharing: Sequence[tuple[Sharing, Bounds]]) -> list[Figure]:
    """Draws every figure that the study has data for."""
    figures = [
        *_nstar_figures(study),
        *_accuracy_figures(study),
        _sharing_figure(study, sharing),
        _sharing_against_accuracy(study, sharing),
        _success_figure(study),
        _steps_figure(study),
    ]
    return [figure for figure in figures if figure]


def to_svg(figure: Figure) -> str:
    """Draws a figure on white, without a browser."""
    return vl_convert.vegalite_to_svg(figure.spec, vl_version=_VEGA_LITE)


def library() -> str:
    """Returns the JavaScript that draws figures in a page, Vega and all."""
    return vl_convert.javascript_bundle(vl_version=_VEGA_LITE)


def _nstar_figures(study: Study) -> Iterable[Figure]:
    """N* against L, one figure a task: models are rows, formats columns."""
    for task in dict.fromkeys(map(task_of, study.cells)):
        rows = [_nstar_row(cell, study) for cell in study.cells if task_of(cell) == task]
        base = alt.Chart().encode(
            x=alt.X("L:O", title="L", axis=alt.Axis(labelAngle=0)),
            color=_color("distribution", "length distribution", DISTRIBUTIONS),
        )
        learned = base.transform_filter("datum.learned").encode(y=_log("N", "N*"))
        missed = base.transform_filter("!datum.learned").encode(y=_log("N", "N*"))
        layers = alt.layer(
            learned.mark_line(strokeWidth=1.5).encode(detail="distribution:N"),
            learned.mark_rule(strokeWidth=3, opacity=0.4).encode(y2="low:Q"),
            learned.mark_point(filled=True, size=45, opacity=1).encode(tooltip=_TOOLTIP),
            missed.mark_point(shape="triangle-up", size=60, opacity=0.8).encode(tooltip=_TOOLTIP),
        ).properties(width=_WIDTH, height=_HEIGHT)
        yield _figure(
            f"nstar_{_slug(task)}",
            f"N* against L, {task}",
            "Points: N*, with its bracket. Hollow triangles: not learned, at N_max. "
            "Lines join the lengths that were learned.",
            _grid(layers, rows),
            rows,
            task,
        )


_TOOLTIP = [alt.Tooltip(f"{name}:N") for name in ("model", "format", "distribution", "L", "answer")]


def _nstar_row(cell: CellRecord, study: Study) -> dict[str, Any]:
    learned = cell.nstar is not None
    return {
        **_labels(cell, study),
        "L": cell.cell["data"]["max_length"],
        "distribution": cell.cell["data"]["length_distribution"],
        "learned": learned,
        "N": cell.nstar if learned else cell.max_size,
        "low": max(1, cell.largest_failed),
        "answer": f"({cell.largest_failed}, {cell.nstar}]" if learned else f"> {cell.max_size}",
    }


def _sharing_figure(study: Study, sharing: Sequence[tuple[Sharing, Bounds]]) -> Figure | None:
    """Kappa as bars from 1, with the interval from resampled runs (the paper's figure 6)."""
    rows = []
    for one, interval in sharing:
        known, joint = one.bounds, one.joint
        if known.text == "?":
            continue
        shown = known.low if known.low > 0 else known.high
        kind = "value" if known.value is not None else "at least" if known.low > 0 else "at most"
        rows.append(
            {
                **_labels(joint, study),
                "task": task_of(joint),
                "L": joint.cell["data"]["max_length"],
                **{"kappa": shown, "kind": kind, "one": 1, "text": known.text},
                "low": interval.low if interval.low > 0 else shown,
                "high": shown if math.isinf(interval.high) else interval.high,
                "interval": interval.text,
            }
        )
    if not rows:
        return None
    tooltip = [
        alt.Tooltip(f"{name}:N") for name in ("model", "format", "task", "L", "text", "interval")
    ]
    base = alt.Chart().encode(
        x=alt.X("model:N", title=None), xOffset=alt.XOffset("L:N"), tooltip=tooltip
    )
    kinds = alt.Shape(
        "kind:N",
        title="kappa",
        scale=alt.Scale(
            domain=["value", "at least", "at most"],
            range=["circle", "triangle-up", "triangle-down"],
        ),
    )
    layers = alt.layer(
        alt.Chart().mark_rule(strokeDash=[4, 3], opacity=0.6).encode(y=alt.datum(1)),
        base.mark_bar(opacity=0.75).encode(
            y=_log("kappa", "kappa", form="~g"), y2="one:Q", color=_color("L", "L")
        ),
        base.mark_rule(strokeWidth=1.5).encode(y=_log("low", "kappa", form="~g"), y2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(
            y=_log("kappa", "kappa", form="~g"), shape=kinds, color=alt.value("#6b7280")
        ),
    ).properties(width=_WIDTH, height=_HEIGHT)
    return _figure(
        "sharing",
        "Sharing factor kappa",
        "Bars start at 1 (no sharing, no interference). Triangles: a bound, pointing to where "
        "kappa may lie. Thin lines: 2.5 to 97.5 % over resampled seeds.",
        _grid(layers, rows, "task"),
        rows,
    )


def _sharing_against_accuracy(
    study: Study, sharing: Sequence[tuple[Sharing, Bounds]]
) -> Figure | None:
    rows = [
        {
            **_labels(one.joint, study),
            "task": task_of(one.joint),
            "L": one.joint.cell["data"]["max_length"],
            "kappa": one.bounds.value,
            "accuracy": accuracy,
        }
        for one, _ in sharing
        if one.bounds.value is not None and (accuracy := accuracy_at_twice(one.joint)) is not None
    ]
    if not rows:
        return None
    tooltip = [
        alt.Tooltip(f"{name}:N") for name in ("model", "format", "task", "L", "kappa", "accuracy")
    ]
    chart = (
        alt.Chart(_ROWS)
        .mark_point(filled=True, size=60, opacity=0.85)
        .encode(
            x=_log("kappa", "kappa", channel=alt.X, form="~g"),
            y=alt.Y("accuracy:Q", title="rescaled accuracy at 2L"),
            color=_color("model", "model"),
            shape=alt.Shape("format:N", sort=list(FORMATS)),
            tooltip=tooltip,
        )
        .properties(width=420, height=280)
    )
    return _figure(
        "sharing_against_accuracy",
        "Sharing factor against accuracy at 2L",
        "One point a joint cell whose kappa is a number; bounds are left out.",
        chart,
        rows,
    )


def _accuracy_figures(study: Study) -> Iterable[Figure]:
    """Accuracy beyond the training lengths, one figure a task."""
    cells = [cell for cell in study.cells if cell.extrapolation]
    for task in dict.fromkeys(map(task_of, cells)):
        some = [cell for cell in cells if task_of(cell) == task]
        rows = [row for cell in some for row in _accuracy_rows(cell, study)]
        base = alt.Chart().encode(
            x=alt.X("times:Q", title="length / L", scale=alt.Scale(zero=False)),
            y=alt.Y("accuracy:Q", title="rescaled accuracy"),
            color=_color("distribution", "length distribution", DISTRIBUTIONS),
            detail="L:N",
            tooltip=[
                alt.Tooltip(f"{name}:N") for name in ("distribution", "L", "length", "accuracy")
            ],
        )
        layers = alt.layer(
            alt.Chart().mark_rule(strokeDash=[4, 3], opacity=0.6).encode(x=alt.datum(1)),
            base.mark_line(point=alt.OverlayMarkDef(size=20), strokeWidth=1.5, opacity=0.8),
        ).properties(width=_WIDTH, height=_HEIGHT)
        yield _figure(
            f"accuracy_{_slug(task)}",
            f"Accuracy beyond the training lengths, {task}",
            "One line an L. Rescaled so that chance is 0; dashed: the longest training length. Of "
            "the run with the lowest validation loss at the largest N that has one.",
            _grid(layers, rows),
            rows,
            task,
        )


def _accuracy_rows(cell: CellRecord, study: Study) -> Iterable[dict[str, Any]]:
    longest, seen = cell.cell["data"]["max_length"], cell.extrapolation
    for length, accuracy in zip(seen.lengths, seen.rescaled, strict=True):
        yield {
            **_labels(cell, study),
            "distribution": cell.cell["data"]["length_distribution"],
            **{"L": longest, "length": length, "times": round(length / longest, 4)},
            "accuracy": round(accuracy, 4),
        }


def _success_figure(study: Study) -> Figure | None:
    """Share of seeds that succeed against N, with the fitted curve and N50."""
    whole = [cell for cell in study.cells if _is_whole(study.probes.get(cell.cell_key, ()))]
    if not whole:
        return None
    rows = []
    for cell in whole[:MOST_CURVES]:
        data, curve = cell.cell["data"], success_curve(study.probes[cell.cell_key])
        name = (
            f"{study.labels[cell.cell_key]} {data['format']} {task_of(cell)} "
            f"{data['length_distribution']} L={data['max_length']}: N50 {_n50(curve)}"
        )
        first, last = curve.sizes[0], curve.sizes[-1]
        for size, solved, trials in zip(curve.sizes, curve.successes, curve.trials, strict=True):
            rows.append({"cell": name, "N": size, "share": solved / trials, "seeds": trials})
        if curve.n50 is not None:
            for k in range(41):
                size = first * (last / first) ** (k / 40)
                rows.append({"cell": name, "N": size, "fitted": curve.probability(size)})
        low, high = max(first, curve.low), min(last, curve.high)
        if low < high:
            rows.append({"cell": name, "N": low, "high": high, "half": 0.5})
    names = _distinct(rows, "cell")
    base = alt.Chart().encode(x=_log("N", "N", channel=alt.X))
    layers = alt.layer(
        base.transform_filter("isValid(datum.fitted)")
        .mark_line(color=COLORS[0], strokeWidth=1.5)
        .encode(y="fitted:Q"),
        base.transform_filter("isValid(datum.half)")
        .mark_rule(color=COLORS[1], strokeWidth=4, opacity=0.7)
        .encode(x2="high:Q", y="half:Q"),
        base.transform_filter("isValid(datum.share)")
        .mark_point(filled=True, size=45, color=COLORS[0])
        .encode(
            y=alt.Y("share:Q", title="seeds that succeed", axis=alt.Axis(format="%")),
            tooltip=[alt.Tooltip("N:Q"), alt.Tooltip("share:Q"), alt.Tooltip("seeds:Q")],
        ),
    ).properties(width=_WIDTH, height=_HEIGHT)
    left_out = len(whole) - MOST_CURVES
    return _figure(
        "success",
        "Success against N",
        "Share of seeds of which any learning rate solves N, and a logistic curve in log N. Bar: "
        "95 % interval of N50, as far as the sizes reach. Only cells whose runs all ended."
        + (f" The first {MOST_CURVES} cells; {left_out} more are not drawn." * (left_out > 0)),
        layers.facet(
            facet=alt.Facet("cell:N", title=None, sort=names), columns=4, data=_ROWS
        ).resolve_scale(x="independent"),
        rows,
    )


def _n50(curve: SuccessCurve) -> str:
    interval = Bounds(float(f"{curve.low:.3g}"), float(f"{curve.high:.3g}")).text
    return interval if curve.n50 is None else f"{curve.n50:.3g} ({interval})"


def _is_whole(probes: Sequence[ProbeRecord]) -> bool:
    """Tells whether every run of at least three sizes went to its end: else a curve misleads."""
    cancelled = any(run.outcome == "cancelled" for probe in probes for run in probe.runs)
    return len(probes) > 2 and not cancelled


def _steps_figure(study: Study) -> Figure | None:
    rows = []
    for cell in study.cells:
        for probe in study.probes.get(cell.cell_key, ()):
            steps = [run.steps for run in probe.runs if run.outcome == "solved" and run.steps]
            if steps:
                labels = _labels(cell, study) | {"task": task_of(cell)}
                rows.append(labels | {"N": probe.size, "steps": min(steps)})
    if not rows:
        return None
    chart = (
        alt.Chart()
        .mark_point(filled=True, size=18, opacity=0.6)
        .encode(
            x=_log("N", "N", channel=alt.X),
            y=_log("steps", "steps"),
            color=_color("task", "task"),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return _figure(
        "steps_to_solve",
        "Steps to solve against N",
        "Training steps of the fastest solved run of every learned size. Records hold no "
        "trajectories, so these stand where learning curves would.",
        _grid(chart, rows),
        rows,
    )


def profile_figure(
    curves: Mapping[str, Sequence[float]], most_tau: float, name: str = "profiles"
) -> Figure:
    """Draws performance profiles.

    Args:
      curves: by model, the ratios N* / best of all cells, infinite where not learned.
      most_tau: where the axis ends.
      name: of the figure.
    """
    rows = []
    for model, ratios in curves.items():
        taus = [1.0, *sorted({ratio for ratio in ratios if 1 < ratio < most_tau}), most_tau]
        for tau in taus:
            share = sum(ratio <= tau for ratio in ratios) / len(ratios)
            rows.append({"model": model, "tau": tau, "share": share})
    dashes = [[1, 0], [6, 3], [2, 2]]
    names = list(curves)
    colors = [COLORS[number % len(COLORS)] for number in range(len(names))]
    styles = [dashes[number // len(COLORS) % len(dashes)] for number in range(len(names))]
    chart = (
        alt.Chart(_ROWS)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=_log("tau", "tau: N* as a multiple of the best model's", channel=alt.X, form="~g"),
            y=alt.Y("share:Q", title="share of cells", axis=alt.Axis(format="%"), scale=_UNIT),
            color=alt.Color("model:N", title="model", scale=alt.Scale(domain=names, range=colors)),
            strokeDash=alt.StrokeDash(
                "model:N", title="model", scale=alt.Scale(domain=names, range=styles)
            ),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("tau:Q", format=".3g"),
                alt.Tooltip("share:Q", format=".0%"),
            ],
        )
        .properties(width=520, height=320)
    )
    return _figure(
        name,
        "Performance profiles",
        "Share of cells that a model learned from at most tau times the data of the best model; "
        "further up and further left is better. Cells not learned never count.",
        chart,
        rows,
    )


# --- what all figures share ---------------------------------------------------------------------


def _figure(
    name: str,
    title: str,
    note: str,
    chart: alt.TopLevelMixin,
    rows: Sequence[dict[str, Any]],
    task: str = "",
) -> Figure:
    spec = chart.configure_legend(symbolOpacity=1).to_dict()
    return Figure(name, title, note, spec | {"data": {"values": rows}}, task)


def _labels(cell: CellRecord, study: Study) -> dict[str, str]:
    return {"model": study.labels[cell.cell_key], "format": cell.cell["data"]["format"]}


def _grid(
    chart: alt.TopLevelMixin,
    rows: Sequence[dict[str, Any]],
    field: str = "model",
) -> alt.FacetChart:
    """Lays panels out, a row for each value of a field and a column for each format.

    Panels are sorted by number and labelled by name: where a panel is empty, Vega's own way of
    giving an order would let others take its place.
    """
    order = _distinct(rows, field)
    columns = [name for name in FORMATS if name in _distinct(rows, "format")]
    columns += [name for name in _distinct(rows, "format") if name not in columns]
    for one in rows:
        one["row"], one["column"] = order.index(one[field]), columns.index(one["format"])
    return chart.facet(
        row=alt.Row("row:O", title=None, header=_header(order)),
        column=alt.Column("column:O", title=None, header=_header(columns)),
        data=_ROWS,
    )


def _header(names: Sequence[str]) -> alt.Header:
    return alt.Header(labelExpr=f"{json.dumps(names)}[datum.value]")


def _distinct(rows: Sequence[dict[str, Any]], field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def _log(field: str, title: str, channel: type = alt.Y, form: str = "~s") -> Any:
    scale = alt.Scale(type="log", nice=False, padding=8)
    decade = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
    faint = {"condition": {"test": decade, "value": 1}, "value": 0.25}
    axis = alt.Axis(format=form, gridOpacity=faint)
    return channel(f"{field}:Q", title=title, scale=scale, axis=axis)


def _color(field: str, title: str, order: Sequence[str] = ()) -> alt.Color:
    sort = list(order) or None
    return alt.Color(f"{field}:N", title=title, sort=sort, scale=alt.Scale(range=list(COLORS)))


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
