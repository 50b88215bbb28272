"""The dense SSM: one recurrence, computed in three ways by the size of the alphabet."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_models import init, quick_jit, random_params
from scipy import stats

from ib_bench.models import embedding, make_model, structures


def make(num_inputs, hidden, num_outputs=5):
    return make_model(
        "dense_ssm", num_inputs=num_inputs, num_outputs=num_outputs, max_positions=32, hidden=hidden
    )


def step_by_step(params, tokens_T):
    """One sequence in numpy and 64 bits: h = sum_k x_k (W_k^T h); W acts on row vectors."""
    p = {name: np.asarray(leaf, np.float64) for name, leaf in params.items()}
    state, logits = p["start"], []
    for token in tokens_T:
        state = sum(
            x * (state @ w) for x, w in zip(p["embedding"][token], p["weights"], strict=True)
        )
        logits.append(state @ p["head"] + p["head_bias"])
    return np.stack(logits)


BRANCHES = {  # MAX_APPLIED, MAX_ONE_HOT
    "every matrix applied": (16, 128),
    "rows by one-hot product": (0, 128),
    "rows by gather": (0, 0),
}


def values_and_gradients(monkeypatch, branch, params, tokens_BT, cotangent_BTV):
    max_applied, max_one_hot = BRANCHES[branch]
    monkeypatch.setattr(structures, "MAX_APPLIED", max_applied)
    monkeypatch.setattr(structures, "MAX_ONE_HOT", max_one_hot)
    monkeypatch.setattr(embedding, "MAX_ONE_HOT", max_one_hot)
    num_inputs, hidden = params["embedding"].shape
    model = make(num_inputs, hidden)

    @quick_jit
    def both(params):
        logits_BTV, pull = jax.vjp(lambda params: model.apply(params, tokens_BT), params)
        return logits_BTV, pull(cotangent_BTV)[0]

    program = str(jax.make_jaxpr(model.apply)(params, tokens_BT))
    return both(params), program


@pytest.mark.parametrize("num_positions", [1, 7])
def test_all_branches_give_the_same_logits_and_gradients(monkeypatch, num_positions):
    generator = np.random.RandomState(0)
    params = random_params(make(num_inputs=5, hidden=8))
    tokens_BT = generator.randint(5, size=(3, num_positions)).astype(np.int32)
    cotangent_BTV = generator.randn(3, num_positions, 5).astype(np.float32)
    results, programs = {}, {}
    for branch in BRANCHES:
        results[branch], programs[branch] = values_and_gradients(
            monkeypatch, branch, params, tokens_BT, cotangent_BTV
        )
    assert len(set(programs.values())) == len(BRANCHES), "a branch was not taken"
    expected = np.stack([step_by_step(params, row) for row in tokens_BT])
    reference = results["every matrix applied"]
    for branch, (logits_BTV, grads) in results.items():
        np.testing.assert_allclose(logits_BTV, expected, rtol=1e-4, atol=1e-5, err_msg=branch)
        for name, grad in grads.items():
            np.testing.assert_allclose(
                grad, reference[1][name], rtol=1e-4, atol=1e-5, err_msg=f"{branch}, {name}"
            )


@pytest.mark.parametrize("num_inputs", [16, 17, 128, 129])
def test_logits_equal_a_loop_step_by_step_at_every_threshold(num_inputs):
    model = make(num_inputs, hidden=8)
    params = random_params(model)
    tokens_BT = np.random.RandomState(1).randint(num_inputs, size=(3, 9)).astype(np.int32)
    tokens_BT[0, 0] = num_inputs - 1
    logits_BTV = quick_jit(model.apply)(params, tokens_BT)
    expected = np.stack([step_by_step(params, row) for row in tokens_BT])
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-4, atol=1e-5)


def test_there_is_no_additive_term():
    """The state is linear in h_0, so a zero h_0 leaves the head's bias alone."""
    model = make(num_inputs=3, hidden=8)
    params = random_params(model)
    bias_V = jnp.arange(5.0)
    params = params | {"start": np.zeros(8, np.float32), "head_bias": bias_V}
    logits_BTV = quick_jit(model.apply)(params, jnp.array([[0, 1, 2, 1]]))
    np.testing.assert_array_equal(logits_BTV, jnp.broadcast_to(bias_V, (1, 4, 5)))


def test_parameters_are_normal_with_the_variances_of_the_paper():
    hidden = 32
    params = init(make(num_inputs=500, hidden=hidden))
    scales = {"embedding": 1.0, "start": 1.0, "weights": (hidden * hidden) ** -0.5}
    for name, scale in scales.items():  # Var W = 1 / (H D)
        fit = stats.kstest(np.asarray(params[name]).ravel(), stats.norm(scale=scale).cdf)
        assert fit.pvalue > 1e-3, name
    assert np.var(params["weights"]) == pytest.approx(1 / hidden**2, rel=0.03)
    assert not params["head_bias"].any()
    # So a step keeps the norm of the state in expectation.
    matrices = np.einsum("vd,dij->vij", params["embedding"], params["weights"])
    after = np.asarray(params["start"]) @ matrices
    before = (np.asarray(params["start"]) ** 2).sum()
    assert (after**2).sum(axis=1).mean() / before == pytest.approx(1.0, rel=0.15)


def test_it_is_the_bilinear_rnn_with_a_full_transition():
    sizes = {"num_inputs": 3, "num_outputs": 5, "max_positions": 8, "hidden": 4}
    settings = {"structure": "full", "rank": 2, "block": 2, "additive": False, "unit_state": False}
    one, other = make_model("dense_ssm", **sizes), make_model("bilinear", **sizes, **settings)
    tokens_BT = np.array([[0, 2, 1, 1]], np.int32)
    params = init(one)
    jax.tree.map(np.testing.assert_array_equal, params, init(other))
    np.testing.assert_array_equal(
        quick_jit(one.apply)(params, tokens_BT), quick_jit(other.apply)(params, tokens_BT)
    )
