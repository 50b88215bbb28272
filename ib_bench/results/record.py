"""What is stored: frozen records, their JSON, the checks a file must pass. Never imports JAX."""

import dataclasses
import json
import math
import types
import typing
from typing import Any

from ib_bench import PROTOCOL_VERSION

OUTCOMES = ("solved", "exhausted", "stalled", "diverged", "cancelled")
VERDICTS = ("learned", "failed", "moot")
STATUSES = ("learned", "saturated", "not_learned")


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """One training run. Losses are in nats per position that is asked for; None: never finite."""

    learning_rate: float
    seed: int
    outcome: str  # one of OUTCOMES; "exhausted": not solved within its budget; "stalled": see optim
    steps: int  # trained
    best_loss: float | None  # lowest validation loss at any evaluation
    best_step: int
    best_accuracy: float  # validation accuracy there
    train_loss: float | None  # mean over the last steps before the last evaluation
    # Accuracy when the run ended, at each of `data.evaluation_lengths`; empty where not evaluated.
    accuracy_at: list[float] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class LaneSteps:
    """Training steps: of runs that ended by themselves, of cancelled runs, and all that were paid
    for, idle lanes included."""

    useful: int
    cancelled: int
    total: int


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Wall time: of compiling the program (once for all its cells), and this probe's share of
    running."""

    compile: float
    run: float


@dataclasses.dataclass(frozen=True)
class ProbeRecord:
    """One N of one cell: every run of its grid and the verdict."""

    protocol: int
    cell_key: str
    cell: dict[str, Any]  # the canonical spec
    size: int  # N: training sequences asked for, and delivered
    verdict: str  # one of VERDICTS; "moot": a smaller size of the same round was learned
    round: list[int]  # the sizes that were tried side by side
    runs: list[RunRecord]
    num_validation: int
    parameters: int
    lane_steps: LaneSteps
    seconds: Seconds
    environment: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class ProbeSummary:
    """A probe as its cell lists it."""

    size: int
    verdict: str
    solved: int
    runs: int


@dataclasses.dataclass(frozen=True)
class Extrapolation:
    """Accuracy beyond the training lengths, of the run with the lowest validation loss at the
    largest N that has one (paper, section 4). Accuracies are raw; chance stands beside them."""

    size: int  # N
    learning_rate: float
    seed: int
    lengths: list[int]
    accuracy: list[float]
    chance: list[float]  # of the best constant guess at these lengths
    num_sequences: int  # per length, drawn at random, with replacement

    @property
    def rescaled(self) -> list[float]:
        """(accuracy - chance) / (1 - chance), per length."""
        pairs = zip(self.accuracy, self.chance, strict=True)
        return [(accuracy - chance) / (1 - chance) for accuracy, chance in pairs]


@dataclasses.dataclass(frozen=True)
class CellRecord:
    """One answer: N* with its bracket, or that the cell was not learned at N_max."""

    protocol: int
    cell_key: str
    cell: dict[str, Any]
    search: dict[str, Any]
    status: str  # one of STATUSES; "saturated": learned only with every training sequence there is
    nstar: int | None  # the smallest learned size
    largest_failed: int  # below N*; 0 where no size failed
    max_size: int  # N_max
    limited_by: str  # what sets N_max: "universe", "budget" or "search.max_size"
    confirmed: bool  # every run at N* went to its end
    probes: list[ProbeSummary]
    contradictions: list[list[int]]  # pairs: a learned size, a larger one that failed
    chance: list[float]  # accuracy of the best constant guess per validation length 2..L (or L)
    num_validation: int
    parameters: int
    lane_steps: LaneSteps
    seconds: Seconds
    environment: dict[str, Any]
    extrapolation: Extrapolation | None = None


@dataclasses.dataclass(frozen=True)
class FailureRecord:
    """A cell that raised instead of coming to an answer. No result: the next start tries again."""

    protocol: int
    cell_key: str
    cell: dict[str, Any]
    error: str  # one line
    traceback: str
    host: str
    environment: dict[str, Any]


Record = ProbeRecord | CellRecord | FailureRecord


def to_json(record: Record) -> str:
    """Writes a record; every number in it is finite."""
    return json.dumps(dataclasses.asdict(record), indent=1, allow_nan=False) + "\n"


def from_json(cls: type, text: str) -> Record:
    """Reads a record and checks it against its schema.

    Raises:
      ValueError: not JSON, or a field is missing, unknown, of the wrong type or out of range.
    """
    try:
        content = json.loads(text, parse_constant=_finite_float, parse_float=_finite_float)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    record = _build(cls, content, cls.__name__)
    if record.protocol != PROTOCOL_VERSION:
        raise ValueError(
            f"protocol: version {record.protocol}, this is version {PROTOCOL_VERSION}; "
            "records of different versions are never mixed"
        )
    _check_ranges(record)
    return record


def _check_ranges(record: Record) -> None:
    def check(condition, message):
        if not condition:
            raise ValueError(message)

    if isinstance(record, ProbeRecord):
        check(record.verdict in VERDICTS, f"verdict: {record.verdict!r} is not in {VERDICTS}")
        check(record.size >= 1, f"size: {record.size} is below 1")
        check(record.size in record.round, f"round: {record.round} lacks {record.size}")
        check(record.runs, "runs: empty")
        for run in record.runs:
            check(run.outcome in OUTCOMES, f"outcome: {run.outcome!r} is not in {OUTCOMES}")
            check(run.steps >= 0, f"steps: {run.steps} is below 0")
        grid = {(run.learning_rate, run.seed) for run in record.runs}
        check(len(grid) == len(record.runs), "runs: a learning rate and seed occur twice")
        solved = any(run.outcome == "solved" for run in record.runs)
        open_ = any(run.outcome == "cancelled" for run in record.runs)
        fits = {"learned": solved, "failed": not solved and not open_, "moot": True}
        check(fits[record.verdict], f"verdict: {record.verdict!r} does not follow from the runs")
    elif isinstance(record, CellRecord):
        check(record.status in STATUSES, f"status: {record.status!r} is not in {STATUSES}")
        learned = record.status != "not_learned"
        check((record.nstar is not None) == learned, f"nstar: {record.nstar} with {record.status}")


def _build(kind: Any, value: Any, where: str) -> Any:
    """Turns JSON into `kind` (dataclass, list, dict, union or scalar), or says where it differs."""
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise ValueError(f"{where}: {_name(value)} instead of an object")
        hints = typing.get_type_hints(kind)
        missing = sorted(_required(kind) - value.keys())
        unknown = sorted(value.keys() - hints.keys())
        if missing or unknown:
            raise ValueError(f"{where}: missing fields {missing}, unknown fields {unknown}")
        return kind(**{key: _build(hints[key], value[key], f"{where}.{key}") for key in value})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        if not isinstance(value, list):
            raise ValueError(f"{where}: {_name(value)} instead of a list")
        return [_build(arguments[0], item, f"{where}[{k}]") for k, item in enumerate(value)]
    if origin is types.UnionType:
        if value is None:
            return None
        return _build(arguments[0], value, where)
    kind = origin or kind
    accepted = (int, float) if kind is float else (kind,)
    if type(value) not in accepted:
        raise ValueError(f"{where}: {_name(value)} instead of {kind.__name__}")
    if type(value) is int and abs(value) >= 2**63:
        raise ValueError(f"{where}: {_name(value)} is out of range")
    return value


def _required(kind: type) -> set[str]:
    """Fields without a default; those with one came later, and older records lack them."""
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return {f.name for f in fields if f.default is missing and f.default_factory is missing}


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value


def _name(value: Any) -> str:
    return f"{str(value)[:40]!r} ({type(value).__name__})"
