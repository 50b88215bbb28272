"""Operands of any run of a cell, for the tests of this folder."""

import numpy as np

from ib_bench import data
from ib_bench.training.run import RunOperands


def operands_of(cell, size=6, learning_rate=1e-2, seed=10):
    program = cell.program
    cell_data = data.make_operands(
        cell.automaton, program.format, cell.split, program.padded_states, program.padded_symbols
    )
    sampler = data.make_sampler(seed, cell_data)
    return RunOperands(np.uint32(seed), np.float32(learning_rate), np.int32(size), sampler)
