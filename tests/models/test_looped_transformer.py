"""The looped transformer: the transformer's block, the same one every time."""

import jax
import numpy as np
import pytest
from numpy_transformer import attention, embed, feed_forward, in_64_bits, read_out
from quick_models import quick_jit, random_params

from ib_bench.models import make_model


def make(loops, positions="learned", name="looped_transformer"):
    return make_model(
        name,
        num_inputs=7,
        num_outputs=5,
        max_positions=12,
        hidden=8,
        heads=2,
        positions=positions,
        **({"loops": loops} if name == "looped_transformer" else {"layers": loops}),
    )


def naive(params, tokens_T, loops, positions):
    """One sequence in numpy and 64 bits."""
    p = in_64_bits(params)
    x = embed(p, tokens_T, positions)
    for _ in range(loops):
        x = feed_forward(p, attention(p, x, 2, positions, ""), "")
    return read_out(p, x)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_logits_equal_a_block_applied_by_hand(positions):
    model = make(loops=3, positions=positions)
    params = random_params(model)
    tokens_BT = np.random.RandomState(1).randint(7, size=(2, 9)).astype(np.int32)
    expected = [naive(params, row, 3, positions) for row in tokens_BT]
    np.testing.assert_allclose(
        quick_jit(model.apply)(params, tokens_BT), expected, rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("num_positions", [1, 4])
def test_no_loops_means_as_many_as_there_are_positions(num_positions):
    model = make(loops=0)
    params = random_params(model)
    tokens_BT = np.random.RandomState(1).randint(7, size=(2, num_positions)).astype(np.int32)
    expected = [naive(params, row, num_positions, "learned") for row in tokens_BT]
    np.testing.assert_allclose(
        quick_jit(model.apply)(params, tokens_BT), expected, rtol=1e-3, atol=1e-4
    )


def test_values_and_gradients_are_those_of_a_transformer_whose_layers_are_equal():
    """The gradient of the tied block is the sum over the layers it stands for."""
    loops, tokens_BT = 3, np.random.RandomState(1).randint(7, size=(4, 6)).astype(np.int32)
    looped, layered = make(loops), make(loops, name="transformer")
    tied = random_params(looped)
    blocks = {name for name in tied if name not in ("embedding", "position", "norm_out", "head")}
    untied = {name: leaf for name, leaf in tied.items() if name not in blocks}
    for layer in range(loops):
        untied |= {f"{name}_{layer}": tied[name] for name in blocks}

    def loss(model):
        return lambda params: (model.apply(params, tokens_BT) ** 2).sum()

    value, grads = quick_jit(jax.value_and_grad(loss(looped)))(tied)
    expected, layer_grads = quick_jit(jax.value_and_grad(loss(layered)))(untied)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name in blocks:
        summed = jax.tree.map(
            lambda *leaves: sum(leaves), *(layer_grads[f"{name}_{k}"] for k in range(loops))
        )
        jax.tree.map(
            lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3),
            grads[name],
            summed,
        )
