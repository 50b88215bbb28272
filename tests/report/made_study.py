"""A study as large as one likes, with all that a report can show, at no cost."""

import itertools
import zlib

from made_records import make_cell, make_probe

from ib_bench.report import Study, make_study
from ib_bench.results import Extrapolation

MODELS = ("bilinear", "dense_ssm", "gru", "lstm", "mamba", "rnn", "delta_product")
MODELS += ("looped_transformer", "transformer")
TASKS = tuple(f"modular_addition({m})" for m in (2, 3, 5, 7, 10, 15)) + ("dihedral(4)",)
COLUMNS = [("fixed", length) for length in range(2, 9)]
COLUMNS += [(name, length) for name in ("uniform", "short_to_long") for length in (5, 8)]
SEEDS = (10, 20, 30)


def made_study(num_cells: int) -> Study:
    """Returns a study of so many cells, at most 2,079: N* vary, a sixth is not learned."""
    questions = itertools.product(MODELS, ("outcome", "cot", "acot"), TASKS, COLUMNS)
    cells, probes = [], {}
    for number, (model, fmt, task, (distribution, length)) in enumerate(questions):
        if number == num_cells:
            break
        noise = zlib.crc32(f"{model}{fmt}{task}{distribution}{length}".encode()) / 2**32
        nstar = None if noise < 1 / 6 else int(4 * 1.9 ** (length + 3 * noise))
        cell = make_cell(
            **{"nstar": nstar, "low": nstar - 1 if nstar else 0, "model": {"name": model}},
            **{"fmt": fmt, "task": task, "distribution": distribution, "length": length},
            max_size=50 * 2**length,
            extrapolation=Extrapolation(
                **{"size": 1000, "learning_rate": 1e-3, "seed": 10, "num_sequences": 2000},
                lengths=[length, 2 * length, 4 * length],
                accuracy=[1.0, 1 - 0.8 * noise, 1 - noise],
                chance=[0.1, 0.1, 0.1],
            ),
        )
        cells.append(cell)
        sizes = [nstar - 1, nstar, 2 * nstar, 4 * nstar] if nstar else [cell.max_size]
        probes[cell.cell_key] = [
            make_probe(size, outcomes(min(k, len(SEEDS)) if nstar else 0), cell)
            for k, size in enumerate(sizes)
        ]
    return make_study(cells, probes)


def outcomes(solved: int) -> dict[tuple[float, int], str]:
    return {(1e-3, seed): "solved" if k < solved else "exhausted" for k, seed in enumerate(SEEDS)}
