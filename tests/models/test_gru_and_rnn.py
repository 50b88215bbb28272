"""GRU and RNN are PyTorch's: their equations, their initialisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_models import init, quick_jit, random_params

from ib_bench.models import make_model
from ib_bench.models.gru import gru_cell
from ib_bench.models.recurrence import MAX_UNROLLED, recurrent, sequential
from ib_bench.models.rnn import rnn_cell


def make(name, num_inputs=3, hidden=16):
    return make_model(name, num_inputs=num_inputs, num_outputs=5, max_positions=32, hidden=hidden)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(inputs, products, hidden):
    """PyTorch's nn.GRU: gates in the order r, z, n; r multiplies h W_n + b'_n."""
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (np.split(part, 3) for part in (inputs, products))
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    return (1 - z) * np.tanh(x_n + r * h_n) + z * hidden


def rnn(inputs, products, hidden):
    """PyTorch's nn.RNN."""
    del hidden
    return np.tanh(inputs + products)


CELLS = {"gru": gru, "rnn": rnn}


def step_by_step(name, params, tokens_T):
    """One sequence in numpy and 64 bits."""
    p = {key: np.asarray(leaf, np.float64) for key, leaf in params.items()}
    hidden, logits = np.zeros(p["hidden"].shape[0]), []
    for token in tokens_T:
        inputs = p["embedding"][token] @ p["input"] + p["input_bias"]
        hidden = CELLS[name](inputs, hidden @ p["hidden"] + p["hidden_bias"], hidden)
        logits.append(hidden @ p["head"] + p["head_bias"])
    return np.stack(logits)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("num_inputs", [3, 200])
def test_logits_equal_a_loop_step_by_step(name, num_inputs):
    model = make(name, num_inputs)
    params = random_params(model, scale=0.5)
    tokens_BT = np.random.RandomState(0).randint(num_inputs, size=(3, 13)).astype(np.int32)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = np.stack([step_by_step(name, params, row) for row in tokens_BT])
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_steps", [1, 2, MAX_UNROLLED + 2])
@pytest.mark.parametrize(("cell", "wide", "inside"), [(gru_cell, 4, 3), (rnn_cell, 1, 1)])
def test_gradients_are_those_of_a_plain_scan(cell, wide, inside, num_steps):
    """Also where the input has columns that the hidden product does not add to."""
    B, H, V = 3, 4, 2
    draw = np.random.RandomState(num_steps)
    weights, start, table, pull = (
        draw.randn(*shape).astype(np.float32)
        for shape in ((H, inside * H), (B, H), (V, wide * H), (num_steps, B, H))
    )

    tokens_TB = draw.randint(V, size=(num_steps, B))

    def plain(weights_HG, cell_BH, table_VG):
        def step(state, input_BG):
            padded_HG = jnp.pad(weights_HG, ((0, 0), (0, (wide - inside) * H)))
            return cell(input_BG + state[0] @ padded_HG, state[1])

        return sequential(step, (jnp.zeros_like(cell_BH), cell_BH), table_VG[tokens_TB])[0]

    def loss(run):
        return lambda *operands: jnp.sum(run(*operands) * pull)

    found = jax.value_and_grad(
        loss(lambda *operands: recurrent(cell, *operands, tokens_TB)), (0, 1, 2)
    )
    found = quick_jit(found)(weights, start, table)
    expected = quick_jit(jax.value_and_grad(loss(plain), (0, 1, 2)))(weights, start, table)
    for part, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CELLS)
def test_parameters_are_uniform_and_the_embedding_is_normal_as_in_pytorch(name):
    hidden = 64
    params = init(make(name, num_inputs=100, hidden=hidden))
    for key, leaf in params.items():
        if key == "embedding":
            assert np.std(leaf) == pytest.approx(1, rel=0.05)
        else:
            assert np.abs(leaf).max() <= hidden**-0.5, key
            assert np.std(leaf) == pytest.approx((3 * hidden) ** -0.5, rel=0.5), key
