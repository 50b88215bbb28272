"""What decoders are made of: GPT-2's embedding, attention, MLP and head, as functions.

Called inside a module's compact `__call__`, whose parameters they make. Every matrix product runs
on rows [R, H], R = B T: on a CPU far quicker than on [B, T, H].
"""

import flax.linen as nn
import jax

from ib_bench.lookup import check_name
from ib_bench.models.attention import attend
from ib_bench.models.embedding import select_rows
from ib_bench.models.linear import linear
from ib_bench.models.positions import POSITIONS, alibi_slopes, rotate, sinusoids

_EPSILON = 1e-5  # of layer norms, as in GPT-2
_INIT = 0.02  # GPT-2's standard deviation; residual outputs are scaled by 1 / sqrt(2 layers)

normal = nn.initializers.normal(_INIT)


def residual(layers: int) -> nn.initializers.Initializer:
    """The initialisation of what is added to the stream, twice in each of `layers`."""
    return nn.initializers.normal(_INIT * (2 * layers) ** -0.5)


def embed(module: nn.Module, tokens_BT: jax.Array) -> jax.Array:
    """Returns the stream that blocks read, with positions where they are added to it: [B T, H]."""
    T, H = tokens_BT.shape[1], module.hidden
    embedding_VH = module.param("embedding", normal, (module.num_inputs, H))
    stream_BTH = select_rows(embedding_VH, tokens_BT)
    if module.positions == "learned":
        position_TH = module.param("position", normal, (module.max_positions, H))
        stream_BTH += position_TH[:T]
    elif module.positions == "sinusoidal":
        # Tokens and positions are then of like size, as in the paper.
        stream_BTH += _INIT * sinusoids(T, H)
    return stream_BTH.reshape(-1, H)


def attention(
    rows_RH: jax.Array,
    num_positions: int,
    heads: int,
    positions: str,
    into_stream: nn.initializers.Initializer,
    suffix: str,
) -> jax.Array:
    """The first half of a block: x + W attend(qkv(norm(x)))."""
    T, H = num_positions, rows_RH.shape[1]
    normed_RH = norm(f"norm_attention{suffix}")(rows_RH)
    qkv_RG = dense(3 * H, kernel_init=normal, name=f"qkv{suffix}")(normed_RH)
    qkv = qkv_RG.reshape(-1, T, 3, heads, H // heads)
    if positions == "rotary":
        qkv = rotate(qkv)
    mixed_RH = attend(qkv, alibi_slopes(heads) if positions == "alibi" else ()).reshape(-1, H)
    return rows_RH + dense(H, kernel_init=into_stream, name=f"attention_out{suffix}")(mixed_RH)


def feed_forward(
    rows_RH: jax.Array, into_stream: nn.initializers.Initializer, suffix: str
) -> jax.Array:
    """The second half of a block: x + W gelu(W' norm(x)), 4 H wide inside."""
    H = rows_RH.shape[1]
    normed_RH = norm(f"norm_mlp{suffix}")(rows_RH)
    wide_RF = nn.gelu(dense(4 * H, kernel_init=normal, name=f"mlp_in{suffix}")(normed_RH))
    return rows_RH + dense(H, kernel_init=into_stream, name=f"mlp_out{suffix}")(wide_RF)


def read_out(rows_RH: jax.Array, num_outputs: int) -> jax.Array:
    """The last norm and the head: [R, H] to logits [R, num_outputs]."""
    head = dense(num_outputs, use_bias=False, kernel_init=normal, name="head")
    return head(norm("norm_out")(rows_RH))


def norm(name: str) -> nn.LayerNorm:
    """A layer norm as in GPT-2."""
    return nn.LayerNorm(epsilon=_EPSILON, name=name)


def dense(*args, **kwargs) -> nn.Dense:
    """`nn.Dense` on rows [R, H], by `linear`."""
    return nn.Dense(*args, dot_general=_linear, **kwargs)


def _linear(rows, weights, dimensions, precision=None, preferred_element_type=None):
    """`linear` in place of the `jax.lax.dot_general` that flax calls."""
    del dimensions, precision, preferred_element_type
    return linear(rows, weights)


def check_heads(hidden: int, heads: int) -> None:
    """Raises a ValueError unless every head gets the same share of the width."""
    if hidden % heads:
        raise ValueError(
            f"model.heads: {heads} heads do not divide model.hidden={hidden}; use a divisor"
        )


def check_positions(positions: str, hidden: int, heads: int) -> None:
    """Raises a ValueError unless `positions` is known and goes with heads of this size."""
    check_name(POSITIONS, positions, "model.positions")
    if positions == "rotary" and hidden // heads % 2:
        raise ValueError(
            f"model.positions: 'rotary' turns pairs, and {heads} heads of model.hidden={hidden} "
            f"have {hidden // heads} entries each; use an even number"
        )
