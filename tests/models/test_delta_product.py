"""DeltaProduct and DeltaNet: their equations, what their transitions can do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_transformer import dense, feed_forward, in_64_bits, norm, read_out
from quick_models import quick_jit, random_params

from ib_bench.models import make_model
from ib_bench.models.delta_product import delta_rule, unit

HIDDEN, HEADS = 6, 2


def make(name="delta_product", eigenvalues="signed", layers=1, heads=HEADS, **settings):
    return make_model(
        name,
        num_inputs=5,
        num_outputs=5,
        max_positions=32,
        hidden=HIDDEN,
        layers=layers,
        heads=heads,
        eigenvalues=eigenvalues,
        **settings,
    )


def mix(p, x_TH, suffix, householders, eigenvalues):
    """One sequence: every head, position and Householder step in turn."""
    T, size = len(x_TH), HIDDEN // HEADS
    rows = dense(p[f"delta_in{suffix}"], norm(p[f"norm_delta{suffix}"], x_TH))
    ends = np.cumsum([HIDDEN, householders * HIDDEN, householders * HIDDEN])
    query, key, value, beta = np.split(rows, ends, axis=1)
    query = query.reshape(T, HEADS, size)
    key, value = (part.reshape(T, householders, HEADS, size) for part in (key, value))
    beta = 1 / (1 + np.exp(-beta.reshape(T, householders, HEADS)))
    beta = beta * {"positive": 1, "signed": 2}[eigenvalues]
    read = np.zeros((T, HEADS, size))
    for head in range(HEADS):
        state = np.zeros((size, size))
        for t in range(T):
            for j in range(householders):
                k, v = key[t, j, head], value[t, j, head]
                k = k / np.sqrt(k @ k + 1e-6)
                state = state - beta[t, j, head] * np.outer(k, k @ state - v)
            q = query[t, head]
            out = (q / np.sqrt(q @ q + 1e-6)) @ state
            read[t, head] = out / np.sqrt((out**2).mean() + 1e-6)
    read = read * p[f"norm_heads{suffix}"]["scale"]
    return dense(p[f"delta_out{suffix}"], read.reshape(T, HIDDEN))


def step_by_step(params, tokens_T, layers, householders, eigenvalues):
    p = in_64_bits(params)
    x = p["embedding"][tokens_T]
    for k in range(layers):
        x = x + mix(p, x, f"_{k}", householders, eigenvalues)
        x = feed_forward(p, x, f"_{k}")
    return read_out(p, x)


@pytest.mark.parametrize(
    ("name", "householders", "eigenvalues", "layers"),
    [
        ("deltanet", 1, "positive", 2),
        ("delta_product", 1, "signed", 1),
        ("delta_product", 3, "signed", 1),
    ],
)
def test_logits_equal_a_loop_step_by_step(name, householders, eigenvalues, layers):
    settings = {"householders": householders} if name == "delta_product" else {}
    model = make(name, eigenvalues, layers, **settings)
    params = random_params(model, scale=0.5)
    tokens_BT = np.random.RandomState(0).randint(5, size=(2, 9)).astype(np.int32)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = [step_by_step(params, row, layers, householders, eigenvalues) for row in tokens_BT]
    np.testing.assert_allclose(logits_BTV, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("num_steps", [1, 5])
def test_values_and_gradients_are_those_of_the_matrices_multiplied_out(num_steps):
    """S_t = A_t S_{t-1} + b_t with A_t = (I - beta k k^T) ... of its Householder steps."""
    B, n, heads, size = 2, 2, 2, 3
    draw = np.random.RandomState(0)
    query, key, value = (
        draw.randn(*shape).astype(np.float32)
        for shape in ((num_steps, B, heads, size), *[(num_steps, B, n, heads, size)] * 2)
    )
    beta = draw.uniform(0, 2, (num_steps, B, n, heads, 1)).astype(np.float32)
    pull = draw.randn(*query.shape).astype(np.float32)

    def multiplied_out(query, key, value, beta):
        state, read = jnp.zeros((B, heads, size, size)), []
        for t in range(num_steps):
            for j in range(n):
                k, v, strength = key[t, :, j], value[t, :, j], beta[t, :, j]
                householder = jnp.eye(size) - strength[..., None] * k[..., None] * k[..., None, :]
                state = householder @ state + (strength * k)[..., None] * v[..., None, :]
            read.append(jnp.einsum("bhk,bhkv->bhv", query[t], state))
        return jnp.stack(read)

    def loss(run):
        def summed(query, key, value, beta):
            return jnp.sum(run(query, unit(key), value, beta) * pull)

        return quick_jit(jax.value_and_grad(summed, (0, 1, 2, 3)))

    found = loss(delta_rule)(query, key, value, beta)
    expected = loss(multiplied_out)(query, key, value, beta)
    for part, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-3, atol=1e-4)


def state_after(betas, key, value):
    """What a key reads after these steps, each along the same key; the first one writes `value`."""
    T = len(betas)
    keys = jnp.tile(key, (T, 1, 1, 1, 1))
    values = jnp.zeros_like(keys).at[0].set(value)
    beta = jnp.array(betas).reshape(T, 1, 1, 1, 1)
    return delta_rule(keys[:, :, 0], keys, values, beta)[-1, 0, 0]


def test_a_beta_of_two_flips_what_was_written_and_a_beta_of_one_erases_it():
    key, value = jnp.array([0.6, 0.8]), jnp.array([1.0, -3.0])
    np.testing.assert_allclose(state_after([1.0, 2.0], key, value), -value, rtol=1e-5)
    np.testing.assert_allclose(state_after([1.0, 2.0, 2.0], key, value), value, rtol=1e-5)
    np.testing.assert_allclose(state_after([1.0, 1.0], key, value), 0 * value, atol=1e-6)


def test_deltanet_is_a_delta_product_of_one_step():
    one, other = make("deltanet"), make("delta_product", householders=1)
    params = random_params(one)
    tokens_BT = np.array([[0, 1, 4, 2]], np.int32)
    np.testing.assert_array_equal(
        quick_jit(one.apply)(params, tokens_BT), quick_jit(other.apply)(params, tokens_BT)
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eigenvalues": "negative"}, "model.eigenvalues: 'negative' is unknown"),
        ({"heads": 4}, "model.heads: 4 heads do not divide model.hidden=6"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make(householders=1, **settings)
