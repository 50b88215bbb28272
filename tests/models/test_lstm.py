"""The LSTM is PyTorch's: its equations, its initialisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_models import init, quick_jit, random_params
from scipy import stats

from ib_bench.models import make_model
from ib_bench.models.lstm import lstm_cell
from ib_bench.models.recurrence import MAX_UNROLLED, recurrent, sequential


def make(num_inputs, hidden, num_outputs=5):
    return make_model(
        "lstm", num_inputs=num_inputs, num_outputs=num_outputs, max_positions=32, hidden=hidden
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step_by_step(params, tokens_T):
    """One sequence in numpy and 64 bits; gates in PyTorch's order i, f, g, o."""
    p = {name: np.asarray(leaf, np.float64) for name, leaf in params.items()}
    size = p["hidden"].shape[0]
    hidden, cell, logits = np.zeros(size), np.zeros(size), []
    for token in tokens_T:
        gates = p["embedding"][token] @ p["input"] + p["input_bias"]
        gates = gates + hidden @ p["hidden"] + p["hidden_bias"]
        i, f, g, o = (gates[k * size : (k + 1) * size] for k in range(4))
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        logits.append(hidden @ p["head"] + p["head_bias"])
    return np.stack(logits)


@pytest.mark.parametrize("num_inputs", [3, 200])
def test_logits_equal_a_loop_step_by_step(num_inputs):
    model = make(num_inputs, hidden=16)
    params = random_params(model, scale=0.5)
    tokens_BT = np.random.RandomState(0).randint(num_inputs, size=(3, 13)).astype(np.int32)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = np.stack([step_by_step(params, row) for row in tokens_BT])
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_steps", [1, 2, 5, MAX_UNROLLED + 1, MAX_UNROLLED + 2, 20])
def test_gradients_are_those_of_a_plain_scan(num_steps):
    """Unrolled or not, from no step in the loop to many."""
    B, H, V = 3, 4, 2
    draw = np.random.RandomState(num_steps)
    weights, cell, table, pull = (
        draw.randn(*shape).astype(np.float32)
        for shape in ((H, 4 * H), (B, H), (V, 4 * H), (num_steps, B, H))
    )

    tokens_TB = draw.randint(V, size=(num_steps, B))

    def plain(weights_HG, cell_BH, table_VG):
        def step(state, input_BG):
            hidden_BH, cell_BH = state
            i, f, g, o = jnp.split(input_BG + hidden_BH @ weights_HG, 4, axis=-1)
            cell_BH = jax.nn.sigmoid(f) * cell_BH + jax.nn.sigmoid(i) * jnp.tanh(g)
            return jax.nn.sigmoid(o) * jnp.tanh(cell_BH), cell_BH

        return sequential(step, (jnp.zeros_like(cell_BH), cell_BH), table_VG[tokens_TB])[0]

    def loss(run):
        return lambda *args: jnp.sum(run(*args) * pull)

    found = jax.value_and_grad(
        loss(lambda *args: recurrent(lstm_cell, *args, tokens_TB)), (0, 1, 2)
    )
    expected = quick_jit(jax.value_and_grad(loss(plain), (0, 1, 2)))(weights, cell, table)
    found = quick_jit(found)(weights, cell, table)
    for part, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-4, atol=1e-4)


def test_parameters_are_uniform_and_the_embedding_is_normal_as_in_pytorch():
    hidden = 64
    params = init(make(num_inputs=100, hidden=hidden, num_outputs=100))
    bound = hidden**-0.5
    uniform = {name: np.asarray(leaf).ravel() for name, leaf in params.items()}
    embedding = uniform.pop("embedding")
    assert sorted(uniform) == ["head", "head_bias", "hidden", "hidden_bias", "input", "input_bias"]
    for name, values in uniform.items():
        assert np.abs(values).max() <= bound, name
        fit = stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf)
        assert fit.pvalue > 1e-3, name
    assert stats.kstest(embedding, stats.norm.cdf).pvalue > 1e-3
    # No two are drawn from the same key.
    assert abs(np.corrcoef(uniform["input"], uniform["hidden"])[0, 1]) < 0.05
    assert (uniform["input_bias"] != uniform["hidden_bias"]).any()
