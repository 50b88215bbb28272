"""What a record says of where it was made. Never imports JAX."""

import functools
import importlib.metadata
import pathlib
import platform
import subprocess

_PACKAGES = ("chex", "flax", "jax", "jaxlib", "numpy", "optax")


@functools.cache
def describe_software() -> dict[str, str]:
    """Returns versions of all that a verdict depends on, and the git commit if there is one."""
    versions = {name: importlib.metadata.version(name) for name in ("ib_bench", *_PACKAGES)}
    return {"python": platform.python_version(), **versions, "commit": _commit()}


def _commit() -> str:
    """The commit of this package's checkout, "+changes" where it is dirty, or "unknown"."""
    root = pathlib.Path(__file__).parents[2]
    if not (root / ".git").exists():
        return "unknown"

    def git(*arguments):
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
