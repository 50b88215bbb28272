import equinox as eqx
import jax
import jax.numpy as jnp


def make_model(*, num_inputs, num_outputs, max_positions, hidden):
    def init(key, tokens_BT):
        cell = eqx.nn.GRUCell(num_inputs, hidden, key=key)
        return cell, eqx.nn.Linear(hidden, num_outputs, key=jax.random.fold_in(key, 1))

    def apply(params, tokens_BT):
        def step(h_BH, x_BV):
            h_BH = jax.vmap(params[0])(x_BV, h_BH)
            return h_BH, jax.vmap(params[1])(h_BH)

        h_BH = jnp.zeros((len(tokens_BT), hidden))
        x_TBV = jax.nn.one_hot(tokens_BT.T, num_inputs)
        return jax.lax.scan(step, h_BH, x_TBV)[1].swapaxes(0, 1)

    return init, apply
