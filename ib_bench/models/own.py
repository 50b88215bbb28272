"""Users' makers, and what any maker returns, as two pure functions."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax

from ib_bench import own


def call_maker(maker: Callable, name: str, values: dict[str, Any]) -> Any:
    """Calls a user's maker.

    Raises:
      ValueError: it raised.
    """
    try:
        return maker(**values)
    except Exception as error:
        given = ", ".join(f"{key}={value!r}" for key, value in values.items())
        raise ValueError(f"model.name: {name}({given}) raised {own.told(error)}") from error


def as_functions(made: Any, name: str) -> tuple[Callable, ...]:
    """Returns init(key, tokens) -> params and apply(params, tokens) -> logits.

    Args:
      made: what a maker returned: a flax.linen module, a pair of such functions, or these and
        start(params, batch size) -> state and step(params, state, tokens) -> state, logits.
      name: of the maker.

    Raises:
      ValueError: it is neither.
    """
    if isinstance(made, nn.Module):
        return _functions_of(made, name)
    if isinstance(made, tuple) and len(made) in (2, 4) and all(callable(part) for part in made):
        return tuple(made)
    raise ValueError(
        f"model.name: {name} returned a {type(made).__name__}; return two functions, "
        "init(key, tokens) -> params and apply(params, tokens) -> logits, or a flax.linen module"
    )


def _functions_of(module: nn.Module, name: str) -> tuple[Callable, Callable]:
    def init(key: jax.Array, tokens_BT: jax.Array):
        variables = module.init(key, tokens_BT)
        others = sorted(variables.keys() - {"params"})
        if others:
            raise ValueError(
                f"model.name: {name} keeps {', '.join(others)} beside its params; a model here is "
                "a function of its params alone"
            )
        return variables["params"]

    def apply(params, tokens_BT: jax.Array) -> jax.Array:
        return module.apply({"params": params}, tokens_BT)

    return init, apply
