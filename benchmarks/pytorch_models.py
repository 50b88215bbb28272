"""The same models as a PyTorch user would write them, and a training step at its best.

Nothing here is slowed down on purpose: nn.LSTM, scaled_dot_product_attention, fused Adam, data that
lie in memory already.
"""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from benchmarks.rows import BATCH_SIZE, MODULUS, Row


class LSTM(nn.Module):
    def __init__(self, row: Row):
        super().__init__()
        self.embedding = nn.Embedding(row.num_inputs, row.hidden)
        self.lstm = nn.LSTM(row.hidden, row.hidden, batch_first=True)
        self.head = nn.Linear(row.hidden, MODULUS)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


class DenseSSM(nn.Module):
    def __init__(self, row: Row):
        super().__init__()
        H = row.hidden
        self.embedding = nn.Parameter(torch.randn(row.num_inputs, H))
        self.weights = nn.Parameter(torch.randn(H, H, H) / H)
        self.start = nn.Parameter(torch.randn(H))
        self.head = nn.Linear(H, MODULUS)

    def forward(self, tokens):
        matrices = torch.einsum("vd,dij->vij", self.embedding, self.weights)  # once per symbol
        state = self.start.expand(len(tokens), -1)
        states = []
        for k in range(tokens.shape[1]):
            state = torch.bmm(matrices[tokens[:, k]], state[..., None])[..., 0]
            states.append(state)
        return self.head(torch.stack(states, 1))


class Block(nn.Module):
    def __init__(self, row: Row):
        super().__init__()
        H = row.hidden
        self.heads = row.heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(H), nn.LayerNorm(H)
        self.qkv, self.out = nn.Linear(H, 3 * H), nn.Linear(H, H)
        self.mlp = nn.Sequential(
            nn.Linear(H, 4 * H), nn.GELU(approximate="tanh"), nn.Linear(4 * H, H)
        )

    def forward(self, stream):
        B, T, H = stream.shape
        qkv = self.qkv(self.norm_attention(stream))
        query, key, value = qkv.view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + self.out(mixed.transpose(1, 2).reshape(B, T, H))
        return stream + self.mlp(self.norm_mlp(stream))


class Transformer(nn.Module):
    def __init__(self, row: Row):
        super().__init__()
        self.embedding = nn.Embedding(row.num_inputs, row.hidden)
        self.position = nn.Embedding(row.positions, row.hidden)
        self.blocks = nn.Sequential(*(Block(row) for _ in range(row.layers)))
        self.norm = nn.LayerNorm(row.hidden)
        self.head = nn.Linear(row.hidden, MODULUS, bias=False)

    def forward(self, tokens):
        stream = self.embedding(tokens) + self.position.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(stream)))


MODELS = {"dense_ssm": DenseSSM, "lstm": LSTM, "transformer": Transformer}


def make_step(row: Row, num_threads: int):
    """Returns step(): one training step on the next of 16 batches that were made before."""
    torch.set_num_threads(num_threads)
    torch.manual_seed(0)
    model = MODELS[row.model](row)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(row.num_inputs, (16, BATCH_SIZE, row.positions))
    targets = torch.randint(MODULUS, (16, BATCH_SIZE, row.positions))
    asked = slice(row.length, None) if row.format == "cot" else slice(-1, None)
    count = 0

    def step():
        nonlocal count
        batch = count % len(tokens)
        count += 1
        logits = model(tokens[batch])[:, asked]
        loss = F.cross_entropy(logits.reshape(-1, MODULUS), targets[batch][:, asked].reshape(-1))
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step
