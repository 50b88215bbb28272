"""The paper's studies (arXiv 2602.18333): what its tables and figures have in common.

`paper` is the paper's size: 250,000 steps, three learning rates, five seeds, N to 5 %. `small` asks
the same questions of models of width 32 on m = 2 and 3, L = 5, with 3,000 steps, two learning rates
and two seeds: minutes on two cores instead of years, and so a statement about that budget alone.

Which figure shows what is our ruling: of the figures only the sixth is certain (kappa of the
transformer); the others stand for one observation each, in the paper's order.
"""

from ib_bench.configs import base
from ml_collections import ConfigDict

SIZES = ("paper", "small")
DISTRIBUTIONS = ("fixed", "uniform", "short_to_long")
FORMATS = ("outcome", "cot", "acot")

_MODELS = {
    "paper": {
        "transformer": {"model.hidden": 256, "model.layers": 6, "model.heads": 4},
        "transformer of 2 layers": {"model.hidden": 256, "model.layers": 2, "model.heads": 4},
        "lstm": {"model.hidden": 768},
        "lstm of 256": {"model.hidden": 256},
        "dense_ssm": {"model.hidden": 256},
    },
    "small": {
        "transformer": {"model.hidden": 32, "model.layers": 2, "model.heads": 2},
        "transformer of 2 layers": {"model.hidden": 32, "model.layers": 2, "model.heads": 2},
        "lstm": {"model.hidden": 32},
        "lstm of 256": {"model.hidden": 32},
        "dense_ssm": {"model.hidden": 32},
    },
}


def check_size(size: str, whole: str = "the paper's") -> None:
    """Raises a ValueError unless a preset comes in this size."""
    if size not in SIZES:
        raise ValueError(f"config: size {size!r} is unknown; write :small, or nothing for {whole}")


def study(size: str) -> ConfigDict:
    """Returns what every study of this size starts from.

    Raises:
      ValueError: there is no such size.
    """
    check_size(size)
    config = base.get_config()
    config.data.length_distribution = DISTRIBUTIONS
    config.data.evaluation_multiples = (2,)  # as table 2, so that all presets share their cells
    if size == "paper":
        config.task.modulus = (2, 3, 5, 10)
        config.data.max_length = (5, 10, 20, 30)
    else:
        config.task.modulus = (2, 3)
        config.data.max_length = (5,)
        config.data.padded_symbols = (3,)  # one program serves both
        config.optim.steps = 3000
        config.optim.stall = 500
        config.grid.learning_rates = (3e-3, 1e-3)
        config.grid.seeds = (10, 20)
        config.search.tolerance = 0.1
        config.search.failure_cost = 12.0
    return config


def models(size: str, *names: str) -> tuple[dict, ...]:
    """Returns entries of `config.sweep`, one a model."""
    return tuple({"model.name": name.split()[0], **_MODELS[size][name]} for name in names)


def sharing(config: ConfigDict, *entries: dict) -> tuple[dict, ...]:
    """Spans entries over all parts of the sharing factor: `uniform` to each L, `fixed` at each n.

    Parts that are no L of their own are evaluated nowhere else, so that they share one program.
    """
    lengths = config.data.max_length
    between = tuple(n for n in range(2, max(lengths) + 1) if n not in lengths)
    whole = {"data.length_distribution": ("fixed", "uniform")}
    parts = {
        "data.length_distribution": "fixed",
        "data.max_length": between,
        "data.evaluation_multiples": (),
    }
    return tuple(entry | part for entry in entries for part in (whole, parts))
