"""Mamba: a selective diagonal state-space model (arXiv 2312.00752, section 3).

Parameters and their initialisation are those of the authors' code, but for the convolution's bias,
which is zero at first. With signed eigenvalues it is the variant that can track parity (arXiv
2411.12537).
"""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp

from ib_bench.lookup import check_name
from ib_bench.models.decoder import dense
from ib_bench.models.embedding import select_rows
from ib_bench.models.recurrence import EIGENVALUES, composes, linear_recurrence, sequential

_EPSILON = 1e-5  # of RMS norms
_EMBEDDING = 0.02  # standard deviation
_DT_RANGE = (1e-3, 1e-1)  # of the first step sizes, uniform in their logarithm

fan_in_uniform = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")  # PyTorch's Linear


class Mamba(nn.Module):
    """x = x + mixer(norm(x)), `layers` times. Rows are time-major here: R = T B."""

    num_inputs: int
    num_outputs: int
    hidden: int
    layers: int
    state: int
    expand: int
    conv: int
    eigenvalues: str

    @nn.compact
    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        B, T = tokens_BT.shape
        normal = nn.initializers.normal(_EMBEDDING)
        embedding_VH = self.param("embedding", normal, (self.num_inputs, self.hidden))
        rows_RH = select_rows(embedding_VH, tokens_BT.T.reshape(-1))
        for layer in range(self.layers):
            mixer = Mixer(
                self.state,
                self.expand * self.hidden,
                self.conv,
                EIGENVALUES[self.eigenvalues],
                self.layers,
                name=f"mixer_{layer}",
            )
            rows_RH += mixer(_norm(f"norm_{layer}")(rows_RH), T)
        head = dense(self.num_outputs, use_bias=False, kernel_init=fan_in_uniform, name="head")
        logits_RV = head(_norm("norm_out")(rows_RH))
        return logits_RV.reshape(T, B, self.num_outputs).swapaxes(0, 1)


class Mixer(nn.Module):
    """h_t = a_t h_{t-1} + dt_t B_t u_t and y_t = C_t h_t + D u_t, for each of E channels N states.

    u is the input, widened to E and convolved; dt = softplus(.), B and C are linear in u. With
    A = -exp(A_log), a = exp(dt A) where `width` is 1, and 2 exp(dt A) - 1 where it is 2.
    """

    state: int
    width_inside: int
    conv: int
    width: float  # of the range of eigenvalues below 1
    layers: int

    @nn.compact
    def __call__(self, rows_RH: jax.Array, num_steps: int) -> jax.Array:
        T, H, E, N = num_steps, rows_RH.shape[1], self.width_inside, self.state
        rank = -(-H // 16)  # of the step sizes, as in the paper
        two_RG = _linear(2 * E, "in")(rows_RH)
        u_RE, gate_RE = jnp.split(two_RG, 2, axis=-1)

        conv_KE = self.param("conv", fan_in_uniform, (self.conv, E))
        conv_bias_E = self.param("conv_bias", nn.initializers.zeros, (E,))
        u_TBE = causal_convolution(u_RE.reshape(T, -1, E), conv_KE) + conv_bias_E
        u_RE = nn.silu(u_TBE).reshape(-1, E)

        selected_RG = _linear(rank + 2 * N, "select")(u_RE)
        low_RK, b_RN, c_RN = jnp.split(selected_RG, [rank, rank + N], axis=-1)
        dt_RE = nn.softplus(dense(E, kernel_init=fan_in_uniform, bias_init=_dt, name="dt")(low_RK))
        decay_EN = -jnp.exp(self.param("A_log", _decays, (E, N)))
        skip_E = self.param("D", nn.initializers.ones, (E,))

        states = selective_scan(
            dt_RE.reshape(T, -1, E),
            u_RE.reshape(T, -1, E),
            b_RN.reshape(T, -1, N),
            decay_EN,
            self.width,
        )
        y_RE = jnp.sum(states.reshape(-1, E, N) * c_RN[:, None], axis=-1) + skip_E * u_RE
        # As the authors do: what is added to the stream is smaller the more layers add to it.
        into_stream = nn.initializers.variance_scaling(1 / 3 / self.layers, "fan_in", "uniform")
        out = dense(H, use_bias=False, kernel_init=into_stream, name="out")
        return out(y_RE * nn.silu(gate_RE))


def selective_scan(
    dt_TBE: jax.Array, u_TBE: jax.Array, b_TBN: jax.Array, decay_EN: jax.Array, width: float
) -> jax.Array:
    """Returns all states h_t = a_t h_{t-1} + dt_t B_t u_t from h_0 = 0: float32[T, B, E, N].

    Composed in parallel on an accelerator. Elsewhere a_t and what is added are made in the step,
    forwards and backwards: [T, B, E, N] is large, and only the states are written to memory.
    """

    def affine(dt, u, b):
        a = 1 - width + width * jnp.exp(dt[..., None] * decay_EN)
        return a, (dt * u)[..., None] * b[..., None, :]

    shape = (*dt_TBE.shape[1:], b_TBN.shape[-1])
    if composes(1):
        a, add = (part.reshape(*part.shape[:2], -1) for part in affine(dt_TBE, u_TBE, b_TBN))
        return linear_recurrence(a, jnp.zeros_like(add[0]), add, "associative").reshape(-1, *shape)

    @jax.checkpoint
    def step(state, now):
        a, add = affine(*now)
        return a * state + add

    return sequential(step, jnp.zeros(shape), (dt_TBE, u_TBE, b_TBN))


def causal_convolution(inputs_TBE: jax.Array, weights_KE: jax.Array) -> jax.Array:
    """Mixes each channel's last K values, the present one with weights_KE[K - 1]."""
    T, K = len(inputs_TBE), len(weights_KE)
    padded = jnp.pad(inputs_TBE, ((K - 1, 0), (0, 0), (0, 0)))
    return sum(padded[k : k + T] * weights_KE[k] for k in range(K))


def _norm(name):
    return nn.RMSNorm(epsilon=_EPSILON, name=name)


def _linear(features, name):
    return dense(features, use_bias=False, kernel_init=fan_in_uniform, name=name)


def _dt(key, shape, dtype=jnp.float32):
    """The bias at which softplus gives steps that are uniform in their logarithm."""
    low, high = map(math.log, _DT_RANGE)
    dt = jnp.exp(jax.random.uniform(key, shape, dtype, low, high))
    return dt + jnp.log(-jnp.expm1(-dt))


def _decays(key, shape, dtype=jnp.float32):
    """A = -1, -2, ..., -N in every channel (S4D-Real)."""
    del key
    return jnp.broadcast_to(jnp.log(jnp.arange(1, shape[1] + 1, dtype=dtype)), shape)


def make_mamba(
    *,
    num_inputs: int,
    num_outputs: int,
    hidden: int,
    layers: int,
    state: int,
    expand: int,
    conv: int,
    eigenvalues: str,
) -> nn.Module:
    """Builds a Mamba of width `hidden`, with eigenvalues in [0, 1] or in [-1, 1].

    Raises:
      ValueError: `eigenvalues` is unknown.
    """
    check_name(EIGENVALUES, eigenvalues, "model.eigenvalues")
    return Mamba(num_inputs, num_outputs, hidden, layers, state, expand, conv, eigenvalues)
