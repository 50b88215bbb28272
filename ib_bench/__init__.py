"""ib_bench: how much data does a sequence model need before it tracks state?

Importing the package starts no device and imports no JAX; `ib_bench.tasks` and `ib_bench.data`
are usable on their own.
"""

import importlib

__version__ = "0.1.0"

# Raised by every change that could alter a verdict; records of different versions are never mixed.
PROTOCOL_VERSION = 1


def __getattr__(name):
    if name == "measure":  # imports JAX, as this package does not
        return importlib.import_module("ib_bench.api").measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
