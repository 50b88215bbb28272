"""Plausible records for tests of metrics and reports: what is not named does not matter."""

from ib_bench.results import (
    CellRecord,
    LaneSteps,
    ProbeRecord,
    ProbeSummary,
    RunRecord,
    Seconds,
)

ENVIRONMENT = {
    **{"python": "3.11.2", "ib_bench": "0.1.0", "jax": "0.10.0", "jaxlib": "0.10.1"},
    **{"flax": "0.12.0", "optax": "0.2.6", "numpy": "2.3.0", "chex": "0.1.91"},
    **{"commit": "0123abc", "platform": "cpu", "device": "TFRT_CPU", "num_devices": 2},
    **{"strategy": "map", "per_device": 8},
}


def make_cell(
    nstar: int | None = 14,
    low: int = 13,
    *,
    model: dict | None = None,
    fmt: str = "outcome",
    task: str = "modular_addition(5)",
    distribution: str = "fixed",
    length: int = 5,
    optim: dict | None = None,
    data: dict | None = None,
    grid: dict | None = None,
    solved: int = 3,
    **fields,
) -> CellRecord:
    """A plausible record; `fields` replace those of the record itself."""
    model = {"name": "lstm", "hidden": 64} | (model or {})
    padding = {"padded_length": length, "padded_symbols": 5, "padded_states": 5}
    columns = {"max_length": length, "length_distribution": distribution, "format": fmt}
    cell = {
        "task": task,
        "table": "7ab1e",
        "data": {**columns, "validation_lengths": "uniform", **padding} | (data or {}),
        "model": model,
        "optim": {"steps": 3000, "batch_size": 64, "threshold": 1e-4, "stall": 0} | (optim or {}),
        "grid": {"learning_rates": [1e-3, 1e-4], "seeds": [10, 20, 30]} | (grid or {}),
    }
    probes = [ProbeSummary(low, "failed", 0, 6)] * (low > 0)
    probes += [ProbeSummary(nstar, "learned", solved, 6)] * (nstar is not None)
    defaults = {
        "protocol": 1,
        "cell_key": f"{model['name']}-{model.get('hidden')}_{fmt}_{task}_{distribution}_{length}",
        "search": {"policy": "cost_aware", "tolerance": 0.05},
        "status": "not_learned" if nstar is None else "learned",
        "largest_failed": low,
        "max_size": 820,
        "limited_by": "universe",
        "confirmed": False,
        "probes": probes,
        "contradictions": [],
        "chance": [0.2, 0.25],
        "num_validation": 205,
        "parameters": 17221,
        "lane_steps": LaneSteps(800, 150, 1000),
        "seconds": Seconds(3.25, 100.5),
        "environment": ENVIRONMENT,
    }
    return CellRecord(cell=cell, nstar=nstar, **defaults | fields)


def make_probe(
    size: int,
    outcomes: dict[tuple[float, int], str],
    cell: CellRecord | None = None,
    verdict: str | None = None,
) -> ProbeRecord:
    """A probe from the outcomes of its runs, {(learning rate, seed): outcome}."""
    cell = cell or make_cell()
    runs = [
        RunRecord(rate, seed, outcome, 500, 9e-5 if outcome == "solved" else 0.2, 500, 1.0, 1e-4)
        for (rate, seed), outcome in outcomes.items()
    ]
    solved = any(run.outcome == "solved" for run in runs)
    return ProbeRecord(
        protocol=cell.protocol,
        cell_key=cell.cell_key,
        cell=cell.cell,
        size=size,
        verdict=verdict or ("learned" if solved else "failed"),
        round=[size],
        runs=runs,
        num_validation=cell.num_validation,
        parameters=cell.parameters,
        lane_steps=LaneSteps(500 * len(runs), 0, 500 * len(runs)),
        seconds=Seconds(1.0, 2.0),
        environment=ENVIRONMENT,
    )
