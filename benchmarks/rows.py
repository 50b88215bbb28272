"""What is measured: one row per model and length. Imports neither JAX nor PyTorch."""

import dataclasses

BATCH_SIZE = 64
MODULUS = 5  # of modular addition: the alphabet


@dataclasses.dataclass(frozen=True)
class Row:
    """One model at one length."""

    model: str
    hidden: int
    length: int  # L; "cot" reads 2 L positions
    format: str = "outcome"
    layers: int = 0
    heads: int = 0

    @property
    def positions(self) -> int:
        return 2 * self.length if self.format == "cot" else self.length

    @property
    def num_inputs(self) -> int:
        return MODULUS + (self.format == "cot")

    @property
    def name(self) -> str:
        layers = f" x {self.layers}" if self.layers else ""
        return f"{self.model} {self.hidden}{layers}, T={self.positions}"

    @property
    def flops(self) -> float:
        """Floating-point operations of the matrix products of a training step, at least.

        A product and its two gradients cost three times the product. Counted is what the model
        asks for, not what an implementation spends: for an LSTM and a dense SSM the products with
        the embedding are counted once per symbol.
        """
        H, T, V = self.hidden, self.positions, self.num_inputs
        rows = BATCH_SIZE * T
        head = 2 * rows * H * MODULUS
        if self.model == "lstm":
            forward = 2 * rows * H * 4 * H + 2 * V * H * 4 * H
        elif self.model == "dense_ssm":
            forward = 2 * rows * H * H + 2 * V * H * H * H
        else:
            attention = 2 * 2 * rows * T * H
            forward = self.layers * (2 * rows * 12 * H * H + attention)
        return 3.0 * (forward + head)


ROWS = (
    *(Row("lstm", hidden, length) for hidden in (32, 64, 256) for length in (5, 20)),
    *(Row("dense_ssm", hidden, length) for hidden in (32, 64) for length in (5, 20)),
    *(Row("transformer", 64, length, "cot", layers=2, heads=2) for length in (5, 20)),
    *(Row("transformer", 256, length, "cot", layers=6, heads=4) for length in (5, 20)),
)
