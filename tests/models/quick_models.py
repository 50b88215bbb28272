"""What the tests of models share: quick compilation, and parameters none of which is zero."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

# Tests compile far longer than they run: machine code need not be fast, only soon.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def init(model):
    return quick_jit(model.init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))


def random_params(model, scale=0.3):
    """Every parameter at random, so that none hides at zero."""
    generator = np.random.RandomState(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    return jax.tree.map(
        lambda leaf: (scale * generator.randn(*leaf.shape)).astype(np.float32), shapes
    )
