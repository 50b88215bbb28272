"""Mamba: its equations, its parallel and its sequential form, its eigenvalues."""

import jax
import numpy as np
import pytest
from numpy_transformer import in_64_bits
from quick_models import init, quick_jit, random_params

from ib_bench.models import make_model, recurrence

HIDDEN, STATE, EXPAND, CONV = 6, 3, 2, 4


def make(eigenvalues="positive", layers=1, hidden=HIDDEN):
    return make_model(
        "mamba",
        num_inputs=5,
        num_outputs=5,
        max_positions=32,
        hidden=hidden,
        layers=layers,
        state=STATE,
        expand=EXPAND,
        conv=CONV,
        eigenvalues=eigenvalues,
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def norm(p, x):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * p["scale"]


def mixer(p, x_TH, eigenvalues):
    """One sequence, one position, one channel and one state at a time."""
    T, E = len(x_TH), EXPAND * x_TH.shape[1]
    u, gate = np.split(x_TH @ p["in"]["kernel"], 2, axis=1)
    past = np.concatenate([np.zeros((CONV - 1, E)), u])
    u = np.stack([(past[t : t + CONV] * p["conv"]).sum(axis=0) for t in range(T)]) + p["conv_bias"]
    u = u * sigmoid(u)
    rank = p["dt"]["kernel"].shape[0]
    low, b, c = np.split(u @ p["select"]["kernel"], [rank, rank + STATE], axis=1)
    dt = np.log1p(np.exp(low @ p["dt"]["kernel"] + p["dt"]["bias"]))
    h, y = np.zeros((E, STATE)), np.zeros((T, E))
    for t in range(T):
        for e in range(E):
            for n in range(STATE):
                a = np.exp(-np.exp(p["A_log"][e, n]) * dt[t, e])
                a = 2 * a - 1 if eigenvalues == "signed" else a
                h[e, n] = a * h[e, n] + dt[t, e] * b[t, n] * u[t, e]
            y[t, e] = h[e] @ c[t] + p["D"][e] * u[t, e]
    return (y * gate * sigmoid(gate)) @ p["out"]["kernel"]


def step_by_step(params, tokens_T, layers, eigenvalues):
    """One sequence in numpy and 64 bits."""
    p = in_64_bits(params)
    x = p["embedding"][tokens_T]
    for k in range(layers):
        x = x + mixer(p[f"mixer_{k}"], norm(p[f"norm_{k}"], x), eigenvalues)
    return norm(p["norm_out"], x) @ p["head"]["kernel"]


@pytest.mark.parametrize(("eigenvalues", "layers"), [("positive", 2), ("signed", 1)])
def test_logits_equal_a_loop_step_by_step(eigenvalues, layers):
    model = make(eigenvalues, layers)
    params = random_params(model, scale=0.7)
    tokens_BT = np.random.RandomState(0).randint(5, size=(2, 11)).astype(np.int32)
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = [step_by_step(params, row, layers, eigenvalues) for row in tokens_BT]
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("num_positions", [1, 6])
def test_parallel_and_sequential_forms_agree_in_values_and_gradients(monkeypatch, num_positions):
    tokens_BT = np.random.RandomState(0).randint(5, size=(3, num_positions)).astype(np.int32)
    results = []
    for platforms in (("cpu",), ()):
        model = make("signed")  # a new one each time: what was traced before is kept
        params = random_params(model, scale=0.7)
        monkeypatch.setattr(recurrence, "PARALLEL_PLATFORMS", platforms)
        assert ("scan[" in str(jax.make_jaxpr(model.apply)(params, tokens_BT))) == (not platforms)

        def loss(params, model=model):
            return (model.apply(params, tokens_BT) ** 2).sum()

        results.append(quick_jit(jax.value_and_grad(loss))(params))
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3), *results
    )


def test_the_first_steps_and_decays_are_those_of_the_authors():
    p = init(make(hidden=64))["mixer_0"]
    dt = np.log1p(np.exp(np.asarray(p["dt"]["bias"], np.float64)))
    assert dt.min() > 0.99e-3 and dt.max() < 0.101
    assert np.median(dt) == pytest.approx(1e-2, rel=0.5)  # uniform in the logarithm
    np.testing.assert_allclose(np.exp(p["A_log"]), np.tile([1, 2, 3], (EXPAND * 64, 1)), rtol=1e-5)
    assert (p["D"] == 1).all()
    for name, fan_in in (("in", 64), ("select", 128), ("dt", 4), ("out", 128)):
        kernel = p[name]["kernel"]
        assert kernel.shape[0] == fan_in
        assert np.std(kernel) == pytest.approx((3 * fan_in) ** -0.5, rel=0.1), name


def test_unknown_eigenvalues_are_refused():
    with pytest.raises(ValueError, match="model.eigenvalues: 'sign' is unknown; did you mean"):
        make("sign")
