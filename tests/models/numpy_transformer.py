"""A transformer's block in numpy and 64 bits, one sequence at a time."""

import numpy as np


def naive_attention(query_Td, key_Td, value_Td, slope=0.0):
    """One head of one sequence: every query in turn looks at what came before."""
    mixed = np.zeros_like(value_Td)
    for q in range(len(query_Td)):
        scores = [
            query_Td[q] @ key_Td[k] / np.sqrt(len(query_Td[q])) - slope * (q - k)
            for k in range(q + 1)
        ]
        weights = np.exp(np.array(scores) - max(scores))
        weights /= weights.sum()
        for k in range(q + 1):
            mixed[q] += weights[k] * value_Td[k]
    return mixed


def turned(rows_Td):
    """Entries i and i + d / 2 as a complex number, turned by position x 10,000^(-2 i / d)."""
    result, half = np.zeros_like(rows_Td), rows_Td.shape[1] // 2
    for t, row in enumerate(rows_Td):
        for i in range(half):
            number = (row[i] + 1j * row[i + half]) * np.exp(1j * t * 10_000 ** (-i / half))
            result[t, i], result[t, i + half] = number.real, number.imag
    return result


def sinusoid(t, i, size):
    angle = t / 10_000 ** (2 * (i // 2) / size)
    return np.cos(angle) if i % 2 else np.sin(angle)


def in_64_bits(params):
    return {
        name: in_64_bits(leaf) if isinstance(leaf, dict) else np.asarray(leaf, np.float64)
        for name, leaf in params.items()
    }


def dense(p, x):
    return x @ p["kernel"] + p.get("bias", 0)


def norm(p, x):
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
    return x * p["scale"] + p["bias"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def embed(p, tokens_T, positions):
    x = p["embedding"][tokens_T]
    T, size = x.shape
    if positions == "learned":
        return x + p["position"][:T]
    if positions == "sinusoidal":
        return x + 0.02 * np.array([[sinusoid(t, i, size) for i in range(size)] for t in range(T)])
    return x


def attention(p, x, heads, positions, suffix):
    qkv = dense(p[f"qkv{suffix}"], norm(p[f"norm_attention{suffix}"], x))
    query, key, value = np.split(qkv, 3, axis=1)
    parts = zip(*(np.split(part, heads, axis=1) for part in (query, key, value)), strict=True)
    mixed = []
    for head, (query_Td, key_Td, value_Td) in enumerate(parts):
        if positions == "rotary":
            query_Td, key_Td = turned(query_Td), turned(key_Td)
        slope = 2 ** (-8 * (head + 1) / heads) if positions == "alibi" else 0.0
        mixed.append(naive_attention(query_Td, key_Td, value_Td, slope))
    return x + dense(p[f"attention_out{suffix}"], np.concatenate(mixed, axis=1))


def feed_forward(p, x, suffix):
    wide = gelu(dense(p[f"mlp_in{suffix}"], norm(p[f"norm_mlp{suffix}"], x)))
    return x + dense(p[f"mlp_out{suffix}"], wide)


def read_out(p, x):
    return dense(p["head"], norm(p["norm_out"], x))
