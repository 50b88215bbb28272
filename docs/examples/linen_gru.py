import flax.linen as nn


def make_model(*, num_inputs, num_outputs, max_positions, hidden):
    class GRU(nn.Module):
        @nn.compact
        def __call__(self, tokens_BT):
            x = nn.Embed(num_inputs, hidden)(tokens_BT)
            x = nn.RNN(nn.GRUCell(hidden))(x)
            return nn.Dense(num_outputs)(x)

    return GRU()
