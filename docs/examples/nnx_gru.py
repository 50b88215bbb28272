from flax import nnx


def make_model(*, num_inputs, num_outputs, max_positions, hidden):
    def build(key):
        rngs = nnx.Rngs(key)
        embed = nnx.Embed(num_inputs, hidden, rngs=rngs)
        rnn = nnx.RNN(nnx.GRUCell(hidden, hidden, rngs=rngs), rngs=rngs)
        head = nnx.Linear(hidden, num_outputs, rngs=rngs)
        return nnx.split(nnx.Sequential(embed, rnn, head), nnx.Param, ...)

    def apply(params, tokens_BT):
        graph, state, rest = build(0)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(graph, state, rest)(tokens_BT)

    return lambda key, tokens_BT: nnx.to_pure_dict(build(key)[1]), apply
