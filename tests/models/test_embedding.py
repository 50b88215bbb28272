"""Looking up rows of a table: two ways, one answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ib_bench.models.embedding import MAX_ONE_HOT, one_hot, select_rows


@pytest.mark.parametrize("num_rows", [1, 3, MAX_ONE_HOT, MAX_ONE_HOT + 1, 300])
@pytest.mark.parametrize("shape", [(5,), (2, 7)])
def test_rows_are_looked_up_exactly_and_with_their_gradient(num_rows, shape):
    generator = np.random.RandomState(0)
    table = generator.randn(num_rows, 4).astype(np.float32)
    tokens = generator.randint(num_rows, size=shape).astype(np.int32)
    cotangent = generator.randn(*shape, 4).astype(np.float32)

    @jax.jit
    def lookup(table):
        rows, pull = jax.vjp(lambda table: select_rows(table, tokens), table)
        return rows, pull(cotangent)[0]

    rows, gradient = lookup(table)
    np.testing.assert_array_equal(rows, table[tokens])
    expected = np.zeros_like(table)
    np.add.at(expected, tokens, cotangent)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def test_one_hot_rows_have_a_single_one():
    assert one_hot(jnp.array([[2, 0]]), 3).tolist() == [[[0, 0, 1], [1, 0, 0]]]
