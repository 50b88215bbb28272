"""Models: `MODELS` is the table of contents. A model knows tokens and positions, never tasks.

The only folder that imports flax. A maker is called with the sizes and the settings that its
signature names, and returns a flax.linen module.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ib_bench.models.bilinear import make_bilinear
from ib_bench.models.delta_product import make_delta_product, make_deltanet
from ib_bench.models.dense_ssm import make_dense_ssm
from ib_bench.models.gru import make_gru
from ib_bench.models.looped_transformer import make_looped_transformer
from ib_bench.models.lstm import make_lstm
from ib_bench.models.mamba import make_mamba
from ib_bench.models.own import as_functions, call_maker
from ib_bench.models.rnn import make_rnn
from ib_bench.models.transformer import make_transformer
from ib_bench.own import find, is_own

MODELS = {
    "bilinear": make_bilinear,
    "delta_product": make_delta_product,
    "deltanet": make_deltanet,
    "dense_ssm": make_dense_ssm,
    "gru": make_gru,
    "looped_transformer": make_looped_transformer,
    "lstm": make_lstm,
    "mamba": make_mamba,
    "rnn": make_rnn,
    "transformer": make_transformer,
}

_SIZES = ("num_inputs", "num_outputs", "max_positions", "trained_positions")


class Model(NamedTuple):
    """A sequence model as pure functions; the last two are offered by those that have a state."""

    init: Callable[[jax.Array, jax.Array], Any]  # (key, tokens int32[B, T]) -> params
    apply: Callable[[Any, jax.Array], jax.Array]  # (params, tokens int32[B, T]) -> logits[B, T, V]
    start: Callable[[Any, int], Any] | None = None  # (params, batch size) -> state
    # (params, state, tokens int32[B]) -> state, logits[B, V]
    step: Callable[[Any, Any, jax.Array], tuple[Any, jax.Array]] | None = None


def settings_of(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of `config.model` that a model reads, beside its name, with their values.

    Args:
      name: a key of `MODELS`, or a user's maker, "my_package.my_file:make_model".
      values: what `config.model` holds. A user's maker that takes any key, by **, is given all of
        them; for a key that is not in here its own default counts.

    Raises:
      ValueError: the model is unknown, or its maker needs a key that has no value.
    """
    settings, takes_any = {}, False
    for key, parameter in inspect.signature(_maker(name)).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        elif key in values:
            settings[key] = values[key]
        elif key not in _SIZES and key != "name":
            settings[key] = parameter.default
            if parameter.default is parameter.empty:
                raise ValueError(
                    f"model.{key}: {name} needs it and it has no value; set --config.model.{key}"
                )
    if takes_any:
        settings |= {key: value for key, value in values.items() if key not in settings}
    return {key: value for key, value in settings.items() if key not in (*_SIZES, "name")}


def make_model(
    name: str,
    *,
    num_inputs: int,
    num_outputs: int,
    max_positions: int,
    trained_positions: int | None = None,
    **settings,
) -> Model:
    """Builds a model.

    Args:
      name: a key of `MODELS`, or a user's maker, "my_package.my_file:make_model".
      num_inputs: size of the input vocabulary.
      num_outputs: how many states the logits range over.
      max_positions: the longest sequence it will ever be asked to read.
      trained_positions: the longest sequence it was trained on, where it is asked to read longer
        ones; multiplicative models then keep the norm of their state from there on.
      **settings: the maker's own (`settings_of`).

    Raises:
      ValueError: an unknown name, or a setting out of range.
    """
    maker = _maker(name)
    sizes = {
        "num_inputs": num_inputs,
        "num_outputs": num_outputs,
        "max_positions": max_positions,
        "trained_positions": trained_positions,
    }
    named = inspect.signature(maker).parameters
    if is_own(name):  # they are told the three sizes, asked for or not
        named = {*_SIZES[:3], *named}
    given = {key: size for key, size in sizes.items() if key in named} | settings
    made = call_maker(maker, name, given) if is_own(name) else maker(**given)
    functions = as_functions(made, name)

    def apply(params, tokens_BT):
        if tokens_BT.shape[1] > max_positions:
            raise ValueError(
                f"model {name}: {tokens_BT.shape[1]} positions exceed max_positions={max_positions}"
            )
        return functions[1](params, tokens_BT)

    return Model(functions[0], apply, *functions[2:])


def _maker(name: str) -> Callable:
    return find(MODELS, name, "model.name")


def num_parameters(model: Model) -> int:
    """Counts parameters from the arrays themselves, without making them."""
    tokens_BT = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), tokens_BT)
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
