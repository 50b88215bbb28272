"""Operands of any run of a cell, for the tests of this folder."""

from ib_bench.training.run import make_run_operands


def operands_of(cell, size=6, learning_rate=1e-2, seed=10):
    return make_run_operands(cell.make_data(), size, learning_rate, seed)
