"""What a model has to keep, tried on one model and told so that a person finds the fault."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ib_bench.models import Model
from ib_bench.own import told

_ROWS = 4
_RTOL, _ATOL = 1e-4, 1e-5  # float32, summed in another order

# Checks compile far longer than they run: machine code need not be fast, only soon.
_quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class Finding(NamedTuple):
    """One point of the contract."""

    point: str  # "causality"
    kept: bool
    told: str  # what was seen, and where it was broken


class _BrokenError(Exception):
    """A point is not kept; the message says where."""


class _Case(NamedTuple):
    model: Model
    params: Any
    apply: Callable  # compiled
    tokens_BT: np.ndarray
    num_inputs: int
    num_outputs: int


def check_model(
    model: Model, num_inputs: int, num_outputs: int, max_positions: int
) -> Iterator[Finding]:
    """Tries a model on everything that the benchmark relies on.

    Args:
      model: as `make_model` returns it.
      num_inputs: size of its input vocabulary.
      num_outputs: how many states its logits range over.
      max_positions: the longest sequence that it may be asked to read; at least 1.

    Yields:
      A finding per point, as soon as it is known. Where the first, that it can be built and called,
      is not kept, it is the only one.
    """
    generator = np.random.RandomState(0)
    tokens_BT = generator.randint(num_inputs, size=(_ROWS, max_positions)).astype(np.int32)

    def attempt(point, check):
        try:
            return Finding(point, True, check())
        except _BrokenError as broken:
            return Finding(point, False, str(broken))
        except Exception as error:  # whatever a user's code may raise
            return Finding(point, False, told(error))

    case = None

    def build():
        nonlocal case
        params = _quick_jit(model.init)(jax.random.key(0), tokens_BT[:1])
        _check_params(params)
        # Biases and gates that start at zero would hide what flows through them.
        noise = np.random.RandomState(1)
        stirred = jax.tree.map(
            lambda leaf: np.asarray(leaf) + 0.1 * noise.randn(*leaf.shape).astype(leaf.dtype),
            params,
        )
        case = _Case(model, stirred, _quick_jit(model.apply), tokens_BT, num_inputs, num_outputs)
        count = sum(leaf.size for leaf in jax.tree.leaves(params))
        return f"{count:,} parameters in {len(jax.tree.leaves(params))} arrays"

    yield (first := attempt("parameters", build))
    if not first.kept:
        return
    yield (first := attempt("shapes", lambda: _shapes(case)))
    if not first.kept:
        return
    for point, check in _CHECKS.items():
        yield attempt(point, functools.partial(check, case))


def _check_params(params) -> None:
    leaves = jax.tree.leaves_with_path(params)
    if not leaves:
        raise _BrokenError("init returned no arrays")
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path)
        if not hasattr(leaf, "dtype") or leaf.dtype != jnp.float32:
            kind = getattr(leaf, "dtype", type(leaf).__name__)
            raise _BrokenError(
                f"params{name} is {kind}; parameters are float32 arrays, keep constants out of them"
            )
        if not np.isfinite(leaf).all():
            raise _BrokenError(f"params{name} is not finite at initialisation")


def _shapes(case: _Case) -> str:
    logits_BTV = case.apply(case.params, case.tokens_BT)
    wanted = (*case.tokens_BT.shape, case.num_outputs)
    if getattr(logits_BTV, "shape", None) != wanted:
        raise _BrokenError(
            f"tokens int32{list(case.tokens_BT.shape)} give "
            f"{list(getattr(logits_BTV, 'shape', [])) or type(logits_BTV).__name__} instead of "
            f"logits [batch, positions, num_outputs] = {list(wanted)}"
        )
    if logits_BTV.dtype != jnp.float32:
        raise _BrokenError(f"logits are {logits_BTV.dtype}; return float32")
    if not np.isfinite(logits_BTV).all():
        row, position, _ = np.argwhere(~np.isfinite(logits_BTV))[0]
        raise _BrokenError(f"logits are not finite, first in row {row} at position {position}")
    return f"tokens {list(case.tokens_BT.shape)} -> logits {list(wanted)}, finite"


def _lengths(case: _Case) -> str:
    last = case.tokens_BT.shape[1]
    lengths = sorted({min(length, last) for length in (1, 2, 3, last)})
    for length in lengths:
        try:
            logits_BTV = case.apply(case.params, case.tokens_BT[:, :length])
        except Exception as error:
            raise _BrokenError(f"length {length}: {told(error)}") from error
        if logits_BTV.shape != (_ROWS, length, case.num_outputs):
            raise _BrokenError(f"length {length} gives logits {list(logits_BTV.shape)}")
        if not np.isfinite(logits_BTV).all():
            raise _BrokenError(f"length {length} gives logits that are not finite")
    return f"lengths {', '.join(map(str, lengths))}"


def _causality(case: _Case) -> str:
    """Changes one token at a time: what came before must stay as it is."""
    length = case.tokens_BT.shape[1]
    if length < 2 or case.num_inputs < 2:
        return "nothing to look ahead to"
    before_TV = np.asarray(case.apply(case.params, case.tokens_BT[:1]))[0]
    leaks = []
    for changed in range(1, length):
        tokens_BT = np.repeat(case.tokens_BT[:1], _ROWS, axis=0)
        tokens_BT[:, changed] = (tokens_BT[0, changed] + np.arange(_ROWS)) % case.num_inputs
        logits_BTV = np.asarray(case.apply(case.params, tokens_BT))
        differs_T = ~np.isclose(logits_BTV, before_TV, _RTOL, _ATOL).all(axis=(0, 2))
        leaks += [(position, changed) for position in np.flatnonzero(differs_T[:changed])]
    if leaks:
        position, changed = leaks[0]
        raise _BrokenError(
            f"the logits at position {position} change with the token at position {changed} "
            f"(counted from 0; {len(leaks)} such pairs of {length * (length - 1) // 2}); a model "
            "may only read what came before"
        )
    return f"no position of {length} reads a later one"


def _padding(case: _Case) -> str:
    whole_BTV = np.asarray(case.apply(case.params, case.tokens_BT))
    last = case.tokens_BT.shape[1]
    for length in sorted({min(length, last) for length in (1, 2, 3, last // 2 or 1)}):
        short_BTV = np.asarray(case.apply(case.params, case.tokens_BT[:, :length]))
        same_T = np.isclose(short_BTV, whole_BTV[:, :length], _RTOL, _ATOL).all(axis=(0, 2))
        if not same_T.all():
            raise _BrokenError(
                f"the logits at position {np.flatnonzero(~same_T)[0]} are others where {length} "
                f"positions are given than where {last} are"
            )
    return "what follows a sequence does not show"


def _rows(case: _Case) -> str:
    logits_BTV = np.asarray(case.apply(case.params, case.tokens_BT))
    other_BT = case.tokens_BT.copy()
    other_BT[1:] = (other_BT[1:] + 1) % case.num_inputs
    other_BTV = np.asarray(case.apply(case.params, other_BT))
    if not np.allclose(other_BTV[0], logits_BTV[0], _RTOL, _ATOL):
        raise _BrokenError("row 0 changes with the other rows, as with batch statistics")
    return "no row reads another"


def _determinism(case: _Case) -> str:
    init = _quick_jit(case.model.init)
    tokens_BT = case.tokens_BT
    one, same = (init(jax.random.key(3), tokens_BT[:1]) for _ in range(2))
    other, shaped = init(jax.random.key(4), tokens_BT[:1]), init(jax.random.key(3), tokens_BT)
    if not _equal(one, same):
        raise _BrokenError("the same key gives other parameters; draw from the key alone")
    if _equal(one, other):
        raise _BrokenError("another key gives the same parameters; draw them from the key")
    if not _equal(one, shaped):
        raise _BrokenError("the parameters depend on the tokens; draw from the key alone")
    first, second = (np.asarray(case.apply(case.params, tokens_BT)) for _ in range(2))
    if not np.array_equal(first, second):
        raise _BrokenError("the same tokens give other logits; leave out dropout and other chance")
    return "the key decides the parameters, the tokens the logits"


def _equal(one, other) -> bool:
    same = jax.tree.structure(one) == jax.tree.structure(other)
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=same)
    return same and all(np.array_equal(a, b) for a, b in pairs)


def _batching(case: _Case) -> str:
    """Many runs are trained side by side: init and apply are mapped over."""

    def logits_of(key):
        params = case.model.init(key, case.tokens_BT[:1])
        return case.model.apply(params, case.tokens_BT)

    keys, alone = jax.random.split(jax.random.key(0), 2), _quick_jit(logits_of)
    logits_RBTV = np.asarray(_quick_jit(jax.vmap(logits_of))(keys))
    for run, key in enumerate(keys):
        alone_BTV = np.asarray(alone(key))
        if not np.allclose(logits_RBTV[run], alone_BTV, 1e-3, 1e-4):
            raise _BrokenError("under jax.vmap over runs the logits are others than alone")
    return "the same under jax.jit and jax.vmap"


def _gradients(case: _Case) -> str:
    def loss(params):
        logits_BTV = case.model.apply(params, case.tokens_BT)
        return -jax.nn.log_softmax(logits_BTV)[..., 0].mean()

    grads = _quick_jit(jax.grad(loss))(case.params)
    idle = []
    for path, leaf in jax.tree.leaves_with_path(grads):
        name = f"params{jax.tree_util.keystr(path)}"
        if not np.isfinite(leaf).all():
            raise _BrokenError(f"the gradient of {name} is not finite")
        if not np.any(leaf):
            idle.append(name)
    if len(idle) == len(jax.tree.leaves(grads)):
        raise _BrokenError("no parameter has a gradient; is stop_gradient or argmax in between?")
    return f"finite; none reaches {', '.join(idle)}" if idle else "finite, for every parameter"


def _memory(case: _Case) -> str:
    """No fault, but good to know: how far back the last logits read."""
    length = case.tokens_BT.shape[1]
    before_TV = np.asarray(case.apply(case.params, case.tokens_BT[:1]))[0]
    for changed in range(length - 1):
        tokens_BT = case.tokens_BT[:1].copy()
        tokens_BT[:, changed] = (tokens_BT[:, changed] + 1) % case.num_inputs
        if not np.allclose(case.apply(case.params, tokens_BT)[0, -1], before_TV[-1], 1e-6, 1e-7):
            return f"the last position reads back to position {changed} of {length}"
    return "the last position reads itself alone: no state can be tracked"


def _recurrence(case: _Case) -> str:
    if case.model.step is None:
        return "not offered"
    whole_BTV = np.asarray(case.apply(case.params, case.tokens_BT))
    state = case.model.start(case.params, _ROWS)
    step = _quick_jit(case.model.step)
    for position in range(case.tokens_BT.shape[1]):
        state, logits_BV = step(case.params, state, case.tokens_BT[:, position])
        if not np.allclose(logits_BV, whole_BTV[:, position], 1e-3, 1e-4):
            worst = np.abs(np.asarray(logits_BV) - whole_BTV[:, position]).max()
            raise _BrokenError(
                f"in steps, the logits at position {position} are off by {worst:.2g}"
            )
    return f"{case.tokens_BT.shape[1]} steps give the logits of the whole"


_CHECKS = {
    "lengths": _lengths,
    "causality": _causality,
    "padding": _padding,
    "rows": _rows,
    "determinism": _determinism,
    "batching": _batching,
    "gradients": _gradients,
    "memory": _memory,
    "recurrent form": _recurrence,
}
