"""Frozen settings. The only file that knows ConfigDict: everything below it reads `spec.hidden`.

Placeholder until the config is written.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    name: str
    settings: tuple


@dataclasses.dataclass(frozen=True)
class ProgramSpec:
    model: ModelSpec
    format: str
    padded_length: int
    num_inputs: int
    num_outputs: int
    batch_size: int
    eval_every: int
    beta1: float
    beta2: float
    epsilon: float
