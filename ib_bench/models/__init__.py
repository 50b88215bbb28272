"""Models: `MODELS` is the table of contents. A model knows tokens and positions, never tasks.

The only folder that imports flax. A maker is called with the sizes and the settings that its
signature names, and returns a flax.linen module.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ib_bench.lookup import lookup
from ib_bench.models.bilinear import make_bilinear
from ib_bench.models.delta_product import make_delta_product, make_deltanet
from ib_bench.models.dense_ssm import make_dense_ssm
from ib_bench.models.gru import make_gru
from ib_bench.models.looped_transformer import make_looped_transformer
from ib_bench.models.lstm import make_lstm
from ib_bench.models.mamba import make_mamba
from ib_bench.models.rnn import make_rnn
from ib_bench.models.transformer import make_transformer

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
    """A sequence model as two pure functions."""

    init: Callable[[jax.Array, jax.Array], Any]  # (key, tokens int32[B, T]) -> params
    apply: Callable[[Any, jax.Array], jax.Array]  # (params, tokens int32[B, T]) -> logits[B, T, V]


def settings_of(name: str) -> tuple[str, ...]:
    """Returns the keys of `config.model` that this model reads, beside its name.

    Raises:
      ValueError: the model is unknown.
    """
    maker = lookup(MODELS, name, "model.name")
    return tuple(key for key in inspect.signature(maker).parameters if key not in _SIZES)


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
      name: a key of `MODELS`.
      num_inputs: size of the input vocabulary.
      num_outputs: how many states the logits range over.
      max_positions: the longest sequence it will ever be asked to read.
      trained_positions: the longest sequence it was trained on, where it is asked to read longer
        ones; multiplicative models then keep the norm of their state from there on.
      **settings: the maker's own (`settings_of`).

    Raises:
      ValueError: an unknown name, or a setting out of range.
    """
    maker = lookup(MODELS, name, "model.name")
    sizes = {
        "num_inputs": num_inputs,
        "num_outputs": num_outputs,
        "max_positions": max_positions,
        "trained_positions": trained_positions,
    }
    named = inspect.signature(maker).parameters
    module = maker(**{key: size for key, size in sizes.items() if key in named}, **settings)

    def apply(params, tokens_BT):
        if tokens_BT.shape[1] > max_positions:
            raise ValueError(
                f"model {name}: {tokens_BT.shape[1]} positions exceed max_positions={max_positions}"
            )
        return module.apply({"params": params}, tokens_BT)

    return Model(init=lambda key, tokens_BT: module.init(key, tokens_BT)["params"], apply=apply)


def num_parameters(model: Model) -> int:
    """Counts parameters from the arrays themselves, without making them."""
    tokens_BT = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), tokens_BT)
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
