"""MANY runs side by side: the only place with a lane axis. Knows no search and no files.

A lane is a place in a compiled population. When its run ends the host loads the next one into it:
no recompilation, no idle lanes, as continuous batching does for serving. How lanes share a device
is a strategy: "map" trains one lane after the other for a whole chunk, so that one run's weights
stay in the cache of a CPU core; "vmap" batches them, as a GPU or TPU wants it.
"""

import logging
import time
from collections.abc import Collection, Mapping
from concurrent import futures
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ib_bench.data import MAX_VALIDATION
from ib_bench.specs import LanesSpec, ProgramSpec
from ib_bench.training import devices as device_axis
from ib_bench.training import processes
from ib_bench.training.run import RunOperands, RunState, make_run

logger = logging.getLogger(__name__)

STRATEGIES = {"cpu": "map", "gpu": "vmap", "tpu": "vmap"}
_WHOLE_SIZES = (16, 32)  # rows of the steps for small N, see `make_run`
_MOST_VMAP_LANES = 64  # per device, unless `lanes.per_device` says otherwise


def choose_strategy(spec: LanesSpec) -> str:
    """Returns how lanes share a device, "map" or "vmap"; "auto" goes by the platform."""
    if spec.strategy != "auto":
        return spec.strategy
    return STRATEGIES.get(jax.local_devices()[0].platform, "vmap")


class Progress(NamedTuple):
    """Where one run stands after a chunk; see `RunState`."""

    step: int
    train_loss: float
    loss: float
    accuracy: float
    best_loss: float
    best_step: int
    best_accuracy: float


class Lanes:
    """The lanes of one program on all devices.

    Several processes that run in step, see `processes`, count their lanes through: each holds
    those of its own devices, is told the same about all, and returns the same about all.

    Attributes:
      num_lanes: how many runs fit side by side; lane k is on device k // per_device.
      num_devices: of all processes.
      devices: of this process.
      strategy: "map" or "vmap".
      compile_seconds: spent on compilation so far.
    """

    def __init__(self, program: ProgramSpec, spec: LanesSpec, num_runs: int, example: RunOperands):
        """Compiles the program for as many lanes as fit.

        Args:
          program: what to compile.
          spec: strategy, devices, lanes per device, memory.
          num_runs: runs that may ever be wanted at once; more lanes than that are not made.
          example: operands of any run, for their shapes.
        """
        self.program = program
        self.devices = device_axis.choose_devices(spec.devices)
        self.num_devices = len(self.devices) * processes.count()
        self.strategy = choose_strategy(spec)
        self.compile_seconds = 0.0
        if self.strategy == "map":
            self._run = make_run(program, tuple(n for n in _WHOLE_SIZES if n < program.batch_size))
        else:
            blocks = -(-MAX_VALIDATION // program.batch_size)
            self._run = make_run(program, num_validation_blocks=blocks)
        self._example = example
        self._budget = device_axis.free_memory(self.devices[0])
        if self._budget is not None:
            self._budget = int(self._budget * spec.memory_fraction)
        wanted = spec.per_device or (1 if self.strategy == "map" else _MOST_VMAP_LANES)
        self.per_device = max(1, min(wanted, -(-num_runs // self.num_devices)))
        self._cut_to(processes.least(self._fitting(self.per_device)), "the state of its runs")
        while (fitting := processes.least(self._compile())) < self.per_device:
            self._cut_to(fitting, "what a step needs")
        self._state = jax.tree.map(
            lambda leaf: np.zeros(self._shape + leaf.shape, leaf.dtype),
            jax.eval_shape(self._run.init, example),
        )
        self._operands = jax.tree.map(
            lambda leaf: np.tile(leaf, self._shape + (1,) * np.ndim(leaf)), example
        )
        self._place_operands()

    @property
    def num_lanes(self) -> int:
        return self.num_devices * self.per_device

    @property
    def _local(self) -> range:
        """The lanes of this process."""
        num_local = len(self.devices) * self.per_device
        return range(processes.index() * num_local, (processes.index() + 1) * num_local)

    def is_local(self, lane: int) -> bool:
        """Tells whether this process holds a lane."""
        return lane in self._local

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.devices), self.per_device

    def device_of(self, lane: int) -> int:
        return lane // self.per_device

    def capacity(self, active: Collection[int]) -> int:
        """Returns how many lanes this chunk costs time for, idle ones included.

        With "map" an idle lane takes no time, but all devices wait for the busiest; with "vmap"
        every lane is computed.
        """
        if self.strategy == "vmap":
            return self.num_lanes
        busy = np.bincount([self.device_of(lane) for lane in active], minlength=self.num_devices)
        return int(busy.max()) * self.num_devices

    def load(self, runs: Mapping[int, RunOperands]) -> None:
        """Starts new runs, from scratch, in these lanes."""
        if not runs:
            return
        self._write_operands(runs)
        mask = self._mask(runs)
        self._state = self._init_fn(self._placed(self._state), self._placed_operands, mask)

    def advance(self, active: Collection[int]) -> dict[int, Progress]:
        """Trains these lanes for `eval_every` steps, evaluates them, and tells how they stand."""
        self._state = self._advance_fn(
            self._placed(self._state), self._placed_operands, self._mask(active)
        )
        state = self._state
        fields = jax.device_get(tuple(getattr(state, name) for name in Progress._fields))
        fields = processes.gather([field.reshape(len(self._local)) for field in fields])
        flat = [np.asarray(field).tolist() for field in fields]
        return {lane: Progress(*(field[lane] for field in flat)) for lane in active}

    def accuracy_at(self, lanes: Collection[int]) -> dict[int, list[float]]:
        """Evaluates these lanes at the program's evaluation lengths."""
        mask = self._mask(lanes)
        accuracy = self._accuracy_fn(self._placed(self._state), self._placed_operands, mask)
        flat = processes.gather(jax.device_get(accuracy).reshape(len(self._local), -1)).tolist()
        return {lane: flat[lane] for lane in lanes}

    def program_text(self) -> str:
        """Returns the compiled program that `advance` runs, as XLA prints it."""
        return self._advance_fn.as_text()

    def snapshot(self, lanes: list[int]) -> RunState:
        """Returns the states of these lanes on the host, stacked in this order."""

        def rows(leaf):
            local = jax.device_get(leaf).reshape(len(self._local), *leaf.shape[2:])
            return np.asarray(processes.gather(local))[lanes]

        return jax.tree.map(rows, self._state)

    def restore(self, runs: Mapping[int, RunOperands], states: RunState) -> None:
        """Continues runs in these lanes from the states of a `snapshot` in the same order."""
        rows = [row for row, lane in enumerate(runs) if self.is_local(lane)]
        lanes = [lane - self._local.start for lane in runs if self.is_local(lane)]
        if not rows:
            return
        self._write_operands(runs)

        def place(leaf, saved):
            leaf = np.array(leaf).reshape(len(self._local), *np.shape(leaf)[2:])
            leaf[lanes] = saved[rows]
            return leaf.reshape(*self._shape, *leaf.shape[1:])

        self._state = jax.tree.map(place, jax.device_get(self._state), states)

    def abstract_states(self, num_states: int) -> RunState:
        """Returns the shapes of a `snapshot` of so many lanes."""
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((num_states, *leaf.shape), leaf.dtype),
            jax.eval_shape(self._run.init, self._example),
        )

    # --- compilation and memory ---

    def _compile(self) -> int:
        """Compiles for `per_device` lanes; returns how many of them fit in memory."""
        started = time.monotonic()
        init, advance, accuracy = _POPULATIONS[self.strategy](self._run)
        shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(self._shape + leaf.shape, leaf.dtype),
            (jax.eval_shape(self._run.init, self._example), _as_arrays(self._example)),
        )
        mask = jax.ShapeDtypeStruct(self._shape, jnp.bool_)
        options = device_axis.compiler_options(self.devices[0])
        programs = [(init, (0,)), (advance, (0,))]
        if self.program.evaluation_lengths:
            programs.append((accuracy, ()))
        lowered = [
            device_axis.lower_on_all(fn, self.devices, donated, *shapes, mask)
            for fn, donated in programs
        ]
        try:
            with futures.ThreadPoolExecutor() as pool:  # much of a compilation uses one core only
                compiled = list(pool.map(lambda fn: fn.compile(compiler_options=options), lowered))
        except jax.errors.JaxRuntimeError as error:
            if self.per_device > 1 and "RESOURCE_EXHAUSTED" in str(error):
                return self.per_device // 2
            raise
        self.compile_seconds += time.monotonic() - started
        self._init_fn, self._advance_fn, *rest = compiled
        self._accuracy_fn = rest[0] if rest else None
        memory = self._advance_fn.memory_analysis()
        if self._budget is None or memory is None or self.per_device == 1:
            return self.per_device
        needed = (
            memory.argument_size_in_bytes
            + memory.output_size_in_bytes
            - memory.alias_size_in_bytes
            + memory.temp_size_in_bytes
        )
        if needed <= self._budget:
            return self.per_device
        return max(1, min(self.per_device - 1, self.per_device * self._budget // needed))

    def _fitting(self, per_device: int) -> int:
        """How many lanes' states fit, before anything is compiled."""
        if self._budget is None:
            return per_device
        shapes = (jax.eval_shape(self._run.init, self._example), _as_arrays(self._example))
        lane_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
        return max(1, min(per_device, self._budget // lane_bytes))

    def _cut_to(self, per_device: int, reason: str) -> None:
        if per_device < self.per_device:
            logger.warning(
                "%s: %d lanes per device instead of %d, so that %s fits in %.1f GB",
                self.program.label,
                per_device,
                self.per_device,
                reason,
                self._budget / 1e9 if self._budget else 0,
            )
            self.per_device = per_device

    # --- host arrays to devices ---

    def _mask(self, lanes: Collection[int]) -> jax.Array:
        mask = np.zeros(len(self._local), bool)
        mask[[lane - self._local.start for lane in lanes if self.is_local(lane)]] = True
        return jax.device_put(mask.reshape(self._shape), self._shardings(2))

    def _write_operands(self, runs: Mapping[int, RunOperands]) -> None:
        for lane, operands in runs.items():
            if not self.is_local(lane):
                continue
            place = divmod(lane - self._local.start, self.per_device)

            def write(all_lanes, value, place=place):
                all_lanes[place] = value

            jax.tree.map(write, self._operands, operands)
        self._place_operands()

    def _place_operands(self) -> None:
        self._placed_operands = jax.device_put(self._operands, self._shardings(1))

    def _placed(self, state: Any) -> Any:
        """Moves a state that was built on the host to the devices; others are there already."""
        if isinstance(jax.tree.leaves(state)[0], jax.Array):
            return state
        return jax.device_put(state, self._shardings(0))

    def _shardings(self, argument: int) -> Any:
        return self._advance_fn.input_shardings[0][argument]


def _as_arrays(operands: RunOperands) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), operands)


def _mapped(run):
    """One lane after the other; a lane that is not active is skipped by a real branch."""

    def init(state_R, operands_R, mask_R):
        def lane(args):
            state, operands, mask = args
            return jax.lax.cond(mask, lambda: run.init(operands), lambda: state)

        return jax.lax.map(lane, (state_R, operands_R, mask_R))

    def advance(state_R, operands_R, mask_R):
        def lane(args):
            state, operands, mask = args
            return jax.lax.cond(mask, lambda: run.advance(state, operands), lambda: state)

        return jax.lax.map(lane, (state_R, operands_R, mask_R))

    def accuracy(state_R, operands_R, mask_R):
        def lane(args):
            state, operands, mask = args
            shape = jax.eval_shape(run.accuracy_at, state, operands)
            return jax.lax.cond(
                mask,
                lambda: run.accuracy_at(state, operands),
                lambda: jnp.zeros(shape.shape, shape.dtype),
            )

        return jax.lax.map(lane, (state_R, operands_R, mask_R))

    return init, advance, accuracy


def _batched(run):
    """All lanes at once; lanes that are not active are computed and their results not used."""

    def init(state_R, operands_R, mask_R):
        def lane(state, operands, mask):
            fresh = run.init(operands)
            return jax.tree.map(lambda new, old: jnp.where(mask, new, old), fresh, state)

        return jax.vmap(lane)(state_R, operands_R, mask_R)

    def advance(state_R, operands_R, mask_R):
        del mask_R
        return jax.vmap(run.advance)(state_R, operands_R)

    def accuracy(state_R, operands_R, mask_R):
        del mask_R
        return jax.vmap(run.accuracy_at)(state_R, operands_R)

    return init, advance, accuracy


_POPULATIONS = {"map": _mapped, "vmap": _batched}
