"""Data: which sequences, in which lengths and formats. `make_arrays` serves any other program."""

from ib_bench.data.bijection import MAX_LENGTH
from ib_bench.data.dataset import (
    DataOperands,
    Sampler,
    make_arrays,
    make_operands,
    make_sampler,
    random_batch,
    training_batches,
    validation_batch,
    whole_batch,
)
from ib_bench.data.formats import FORMATS, Batch, num_inputs, num_positions
from ib_bench.data.lengths import (
    DISTRIBUTIONS,
    MAX_VALIDATION,
    VALIDATION_LENGTHS,
    Split,
    lengths_of,
    make_split,
)

__all__ = [
    "DISTRIBUTIONS",
    "FORMATS",
    "MAX_LENGTH",
    "MAX_VALIDATION",
    "VALIDATION_LENGTHS",
    "Batch",
    "DataOperands",
    "Sampler",
    "Split",
    "lengths_of",
    "make_arrays",
    "make_operands",
    "make_sampler",
    "make_split",
    "num_inputs",
    "num_positions",
    "random_batch",
    "training_batches",
    "validation_batch",
    "whole_batch",
]
