"""Several processes that run one program in step, as on the hosts of a TPU slice.

All of them take the same decisions from the same facts: what a process sees alone, a file, a clock,
a signal, it shares here before it acts on it. With one process nothing is sent.
"""

import json
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


def initialize(address: str | None, num_processes: int | None, process_id: int | None) -> None:
    """Joins the other processes; must run before the first use of a device.

    Args:
      address: host:port of process 0; None where JAX finds out (Cloud TPU, SLURM, Kubernetes).
      num_processes: all of them; None likewise.
      process_id: this one, from 0; None likewise.

    Raises:
      ValueError: JAX cannot find out, or the others do not answer.
    """
    try:
        jax.distributed.initialize(address, num_processes, process_id)
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"multihost: {str(error).splitlines()[0]}; outside of Cloud TPU, SLURM and Kubernetes "
            "give --coordinator_address, --num_processes and --process_id"
        ) from None


def leave() -> None:
    """Parts from the other processes; waits until all of them have come to it."""
    if count() > 1:
        jax.distributed.shutdown()


def count() -> int:
    return jax.process_count()


def index() -> int:
    return jax.process_index()


def gather(arrays: Any) -> Any:
    """Concatenates host arrays (a pytree) of all processes along their first axis, by process."""
    if count() == 1:
        return arrays
    return multihost_utils.process_allgather(arrays, tiled=True)


def least(value: int) -> int:
    """Returns the least of the processes' values."""
    return int(gather(np.array([value])).min())


def any_of(flag: bool) -> bool:
    """Tells whether one of the processes says so."""
    return bool(gather(np.array([flag])).any())


def from_first(value: Any) -> Any:
    """Returns what process 0 gave, plain JSON; the others' values do not matter."""
    if count() == 1:
        return value
    text = np.frombuffer(json.dumps(value).encode(), np.uint8)
    size = int(multihost_utils.broadcast_one_to_all(np.int32(text.size)))
    # Powers of two: each new shape compiles once.
    padded = np.zeros(1 << max(10, (size - 1).bit_length()), np.uint8)
    if index() == 0:
        padded[:size] = text
    sent = np.asarray(multihost_utils.broadcast_one_to_all(padded))
    return json.loads(sent[:size].astype(np.uint8).tobytes())
