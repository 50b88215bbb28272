"""Frozen settings: all that a study depends on, hashable, with the names its files go by.

Code reads `spec.hidden`, never `config.get(...)`; only `configure.py` knows where values come from.
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import re
from typing import Any

from ib_bench import PROTOCOL_VERSION, data
from ib_bench.tasks import Automaton, make_task


@dataclasses.dataclass(frozen=True)
class DataSpec:
    max_length: int
    length_distribution: str
    format: str
    label_every: int  # acot: symbols between labels
    validation_lengths: str
    evaluation_lengths: tuple[int, ...]  # at which a run is evaluated when it ends
    padded_length: int  # T: positions are padded to it
    padded_symbols: int  # the alphabet is padded to it
    padded_states: int  # so are the states


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    name: str
    settings: tuple[tuple[str, Any], ...]  # what the model's maker takes, in its own order
    source: str = ""  # of a user's maker: 12 hex digits over its text
    # Which settings a person wants to see; None: all.
    shown: tuple[str, ...] | None = dataclasses.field(default=None, compare=False)

    @property
    def label(self) -> str:
        keys = dict(self.settings) if self.shown is None else self.shown
        return "-".join([self.name, *(str(value) for key, value in self.settings if key in keys)])

    def as_dict(self) -> dict[str, Any]:
        """The model as records hold it."""
        source = {"source": self.source} if self.source else {}
        return {"name": self.name, **source, **dict(self.settings)}


@dataclasses.dataclass(frozen=True)
class OptimSpec:
    steps: int
    batch_size: int
    eval_every: int
    threshold: float
    stall: int
    beta1: float
    beta2: float
    epsilon: float


@dataclasses.dataclass(frozen=True)
class GridSpec:
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> tuple[tuple[float, int], ...]:
        """(learning rate, seed) of all runs of a probe, in the order in which they start."""
        return tuple(itertools.product(self.learning_rates, self.seeds))


@dataclasses.dataclass(frozen=True)
class SearchSpec:
    mode: str
    policy: str
    max_size: int
    tolerance: float
    width: int
    max_probes: int
    failure_cost: float
    sizes: tuple[int, ...]
    confirm: bool

    def as_dict(self) -> dict:
        """The settings as records hold them: plain JSON."""
        return dataclasses.asdict(self) | {"sizes": list(self.sizes)}


@dataclasses.dataclass(frozen=True)
class LanesSpec:
    strategy: str
    devices: int
    per_device: int
    memory_fraction: float
    compile_cache: str


@dataclasses.dataclass(frozen=True)
class OutSpec:
    checkpoint_minutes: float
    log_seconds: float


@dataclasses.dataclass(frozen=True)
class ProgramSpec:
    """What is compiled once; everything else is an operand."""

    model: ModelSpec
    format: str
    padded_length: int
    padded_symbols: int
    padded_states: int
    num_inputs: int
    num_outputs: int
    batch_size: int
    eval_every: int
    beta1: float
    beta2: float
    epsilon: float
    evaluation_lengths: tuple[int, ...] = ()

    @property
    def num_positions(self) -> int:
        """The longest sequence that a run of the program trains on, in tokens."""
        return data.num_positions(self.format, self.padded_length)

    @property
    def max_positions(self) -> int:
        """The longest sequence that the model ever reads, in tokens."""
        return data.num_positions(self.format, max(self.padded_length, *self.evaluation_lengths, 0))

    @property
    def num_extrapolation(self) -> int:
        """Sequences of each evaluation length: whole batches, at least 1,024."""
        return -(-1024 // self.batch_size) * self.batch_size

    @property
    def label(self) -> str:
        return f"{self.model.label} {self.format} T={self.padded_length} V={self.num_inputs}"

    @property
    def key(self) -> str:
        """Names the program in file names."""
        content, model = dataclasses.asdict(self), self.model
        content["model"] = {"name": model.name, "settings": model.settings}
        if model.source:
            content["model"]["source"] = model.source
        return f"{_file_name(self.model.label)}_{self.format}_{_digest(content)}"


@dataclasses.dataclass(frozen=True)
class CellSpec:
    """One question with one answer: N*. Search settings are not part of it."""

    task: str  # as `make_task` reads it
    data: DataSpec
    model: ModelSpec
    optim: OptimSpec
    grid: GridSpec

    @property
    def automaton(self) -> Automaton:
        return make_task(self.task)

    @functools.cached_property
    def split(self) -> data.Split:
        return data.make_split(
            self.automaton.num_symbols,
            self.data.max_length,
            self.data.length_distribution,
            self.data.validation_lengths,
            self.data.padded_length,
        )

    def make_data(self) -> data.DataOperands:
        """Makes the arrays that tell this cell's data from others', padded as its program is."""
        program = self.program
        return data.make_operands(
            self.automaton,
            program.format,
            self.split,
            program.padded_states,
            program.padded_symbols,
            self.data.label_every,
        )

    @property
    def program(self) -> ProgramSpec:
        spec = self.data
        states_apart = 0 if self.automaton.states_are_symbols else spec.padded_states
        extra = states_apart + 1 if spec.format == "cot" else 0
        return ProgramSpec(
            model=self.model,
            format=spec.format,
            padded_length=spec.padded_length,
            padded_symbols=spec.padded_symbols,
            padded_states=spec.padded_states,
            num_inputs=spec.padded_symbols + extra,
            num_outputs=spec.padded_states,
            batch_size=self.optim.batch_size,
            eval_every=self.optim.eval_every,
            beta1=self.optim.beta1,
            beta2=self.optim.beta2,
            epsilon=self.optim.epsilon,
            evaluation_lengths=spec.evaluation_lengths,
        )

    def as_dict(self) -> dict:
        """The canonical spec that records hold: plain JSON, nothing left out."""
        canonical = dataclasses.asdict(self)
        canonical |= {"model": self.model.as_dict(), "table": self.automaton.table_hash}
        return json.loads(json.dumps(canonical))

    @property
    def label(self) -> str:
        """How a person reads the cell; not unique, `key` is."""
        spec = self.data
        every = f"/{spec.label_every}" if spec.label_every > 1 else ""
        return (
            f"{self.model.label} {spec.format}{every} {self.task} L={spec.max_length} "
            f"{spec.length_distribution}"
        )

    @property
    def key(self) -> str:
        """Readable prefix and a hash of (protocol version, canonical spec): a file name."""
        return f"{_file_name(self.label)}_{digest_of(self)}"


@dataclasses.dataclass(frozen=True)
class StudySpec:
    cells: tuple[CellSpec, ...]
    search: SearchSpec
    lanes: LanesSpec
    out: OutSpec

    def groups(self) -> list[tuple[ProgramSpec, list[CellSpec]]]:
        """Cells that share a program, in the order of their first cell."""
        groups: dict[ProgramSpec, list[CellSpec]] = {}
        for cell in self.cells:
            groups.setdefault(cell.program, []).append(cell)
        return list(groups.items())


def digest_of(cell: CellSpec) -> str:
    """Returns 12 hex digits over the protocol version and the canonical spec."""
    return _digest([PROTOCOL_VERSION, cell.as_dict()])


def max_size(cell: CellSpec, search: SearchSpec) -> int:
    """Returns N_max: at most what the budget can visit once and what is left for training."""
    return min(search.max_size, cell.optim.steps * cell.optim.batch_size, cell.split.num_train)


def _file_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.=-]+", "_", label)[:100]


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
