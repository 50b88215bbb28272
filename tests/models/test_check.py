"""The check finds each fault that it is there for, and says where it is."""

import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from ib_bench.models import MODELS, Model, make_model
from ib_bench.models.check import check_model
from ib_bench.models.own import as_functions

HIDDEN, POSITIONS = 8, 6


class Sound(nn.Module):
    """A running mean of embeddings: causal, and nothing is wrong with it."""

    @nn.compact
    def __call__(self, tokens_BT):
        x = nn.Embed(3, HIDDEN)(tokens_BT)
        x = jnp.cumsum(x, axis=1) / (1 + jnp.arange(x.shape[1]))[:, None]
        return nn.Dense(5)(x)


class Noncausal(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        x = nn.Embed(3, HIDDEN)(tokens_BT)
        return nn.Dense(5)(x + x.mean(axis=1, keepdims=True))


class PeeksAhead(nn.Module):
    """Position 2 reads position 4, no other pair leaks."""

    @nn.compact
    def __call__(self, tokens_BT):
        x = nn.Embed(3, HIDDEN)(tokens_BT)
        if x.shape[1] > 4:
            x = x.at[:, 2].add(x[:, 4])
        return nn.Dense(5)(x)


class ReadsLength(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        x = nn.Embed(3, HIDDEN)(tokens_BT)
        return nn.Dense(5)(x / x.shape[1])


class ReadsRows(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        x = nn.Embed(3, HIDDEN)(tokens_BT)
        return nn.Dense(5)(x - x.mean(axis=0, keepdims=True))


class Last(nn.Module):
    """Logits of the last position alone."""

    @nn.compact
    def __call__(self, tokens_BT):
        return nn.Dense(5)(nn.Embed(3, HIDDEN)(tokens_BT))[:, -1]


class Half(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        return nn.Dense(5)(nn.Embed(3, HIDDEN)(tokens_BT)).astype(jnp.bfloat16)


class Infinite(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        x = nn.Dense(5)(nn.Embed(3, HIDDEN)(tokens_BT))
        return x / jnp.where(tokens_BT == 2, 0.0, 1.0)[..., None]


class NoShort(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        if tokens_BT.shape[1] < 3:
            raise ValueError("too short for the convolution")
        return Sound()(tokens_BT)


class NoGradient(nn.Module):
    @nn.compact
    def __call__(self, tokens_BT):
        return jax.lax.stop_gradient(Sound()(tokens_BT))


class RootAtZero(nn.Module):
    """The gradient of a square root at zero."""

    @nn.compact
    def __call__(self, tokens_BT):
        x = Sound()(tokens_BT)
        return x + jnp.sqrt(jnp.abs(x - x))


def drawn_from_shape():
    def init(key, tokens_BT):
        key = jax.random.fold_in(key, tokens_BT.shape[0])
        return {"table": jax.random.normal(key, (3, 5))}

    return init, lambda params, tokens_BT: params["table"][tokens_BT]


def drawn_from_nothing():
    def init(key, tokens_BT):
        del key, tokens_BT
        return {"table": jax.random.normal(jax.random.key(7), (3, 5))}

    return init, lambda params, tokens_BT: params["table"][tokens_BT]


def whole_numbers():
    def init(key, tokens_BT):
        del tokens_BT
        return {"table": jax.random.normal(key, (3, 5)), "size": jnp.int32(3)}

    return init, lambda params, tokens_BT: params["table"][tokens_BT]


def no_params():
    return (lambda key, tokens_BT: {}), lambda params, tokens_BT: jnp.zeros((*tokens_BT.shape, 5))


def raises():
    def init(key, tokens_BT):
        raise RuntimeError("no weights today\nsecond line")

    return init, None.__init__


def stepwise(wrong=False):
    """A sum of embeddings, whole and step by step."""

    def init(key, tokens_BT):
        del tokens_BT
        return {"table": jax.random.normal(key, (3, 5))}

    def apply(params, tokens_BT):
        return jnp.cumsum(params["table"][tokens_BT], axis=1)

    def start(params, batch_size):
        return jnp.zeros((batch_size, 5)), jnp.int32(0)

    def step(params, state, tokens_B):
        total, position = state
        total = total + params["table"][tokens_B]
        shown = total + jnp.where(position == 3, 0.5, 0.0) if wrong else total
        return (total, position + 1), shown

    return init, apply, start, step


def findings(made):
    functions = as_functions(made, "mine")
    return {one.point: one for one in check_model(Model(*functions), 3, 5, POSITIONS)}


def test_a_sound_model_keeps_every_point():
    found = findings(Sound())
    assert all(one.kept for one in found.values()), found
    assert found["parameters"].told == "69 parameters in 3 arrays"
    assert "back to position 0 of 6" in found["memory"].told
    assert found["recurrent form"].told == "not offered"


@pytest.mark.parametrize(
    ("made", "point", "told"),
    [
        (Noncausal(), "causality", "at position 0 change with the token at position 1"),
        (PeeksAhead(), "causality", r"position 2 change with the token at position 4 .*\b1 such"),
        (
            ReadsLength(),
            "padding",
            "position 0 are others where 1 positions are given than where 6",
        ),
        (ReadsRows(), "rows", "row 0 changes with the other rows"),
        (Last(), "shapes", r"give \[4, 5\] instead of logits .* = \[4, 6, 5\]"),
        (Half(), "shapes", "logits are bfloat16; return float32"),
        (Infinite(), "shapes", "not finite, first in row 0 at position"),
        (NoShort(), "lengths", "length 1: ValueError: too short for the convolution"),
        (NoGradient(), "gradients", "no parameter has a gradient"),
        (RootAtZero(), "gradients", "the gradient of params.* is not finite"),
        (drawn_from_shape(), "determinism", "the parameters depend on the tokens"),
        (drawn_from_nothing(), "determinism", "another key gives the same parameters"),
        (whole_numbers(), "parameters", r"params\['size'\] is int32; parameters are float32"),
        (no_params(), "parameters", "init returned no arrays"),
        (raises(), "parameters", "RuntimeError: no weights today"),
        (stepwise(wrong=True), "recurrent form", "in steps, the logits at position 3 are off by"),
    ],
)
def test_each_fault_is_found_and_placed(made, point, told):
    found = findings(made)
    assert not found[point].kept
    assert re.search(told, found[point].told), found[point]
    assert "\n" not in found[point].told


def test_a_recurrent_form_is_compared_step_by_step():
    assert findings(stepwise())["recurrent form"].told == "6 steps give the logits of the whole"


def test_what_reads_itself_alone_is_told():
    def init(key, tokens_BT):
        return {"table": jax.random.normal(key, (3, 5))}

    found = findings((init, lambda params, tokens_BT: params["table"][tokens_BT]))
    assert found["memory"].told.endswith("no state can be tracked")


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_built_in_models_keep_every_point(name):
    settings = {"lstm": {"hidden": 8}}
    settings["transformer"] = {"hidden": 8, "layers": 1, "heads": 2, "positions": "learned"}
    assert name in MODELS
    sizes = {"num_inputs": 3, "num_outputs": 5, "max_positions": POSITIONS}
    found = list(check_model(make_model(name, **sizes, **settings[name]), 3, 5, POSITIONS))
    assert all(one.kept for one in found), found
    assert len(found) == 11
