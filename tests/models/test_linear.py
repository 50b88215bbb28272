"""`linear` is a matrix product, forwards and backwards, whichever side is narrow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ib_bench.models.linear import linear


@pytest.mark.parametrize("lead", [(6,), (2, 3)])
@pytest.mark.parametrize(("H", "G"), [(8, 3), (3, 8), (4, 4)])
def test_it_agrees_with_the_product_and_its_gradients(lead, H, G):
    keys = jax.random.split(jax.random.key(0), 3)
    rows, weights = jax.random.normal(keys[0], (*lead, H)), jax.random.normal(keys[1], (H, G))
    pull = jax.random.normal(keys[2], (*lead, G))

    def loss(product):
        return lambda rows, weights: jnp.sum(jnp.tanh(product(rows, weights)) * pull)

    found = jax.value_and_grad(loss(linear), (0, 1))(rows, weights)
    expected = jax.value_and_grad(loss(jnp.matmul), (0, 1))(rows, weights)
    for part, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-4, atol=1e-5)
