"""The only file that knows devices: which there are, how a function runs on all of them at once."""

import os
from collections.abc import Callable

import jax


def use_every_core(num_devices: int = 0) -> None:
    """Gives the CPU platform one device per core; must run before the first use of a device.

    One device a core beats one device with threads: small matrices do not split.
    Matrix products are set to full float32 precision on every platform.

    Args:
      num_devices: how many CPU devices; 0 for the number of cores this process may use.
    """
    jax.config.update("jax_num_cpu_devices", num_devices or len(os.sched_getaffinity(0)))
    jax.config.update("jax_default_matmul_precision", "highest")


def cache_folder(folder: str) -> str:
    """Returns where things are kept for the next start, "" for nowhere.

    Args:
      folder: `lanes.compile_cache`: a folder, "auto" for the user's cache folder, or "".
    """
    if folder != "auto":
        return folder
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "ib_bench", "compiled")


def keep_compiled(folder: str) -> None:
    """Keeps compiled programs for the next start; `folder` as in `cache_folder`."""
    if folder := cache_folder(folder):
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def choose_devices(num_devices: int = 0) -> list[jax.Device]:
    """Returns the first `num_devices` local devices of the default platform, 0 for all.

    Raises:
      ValueError: there are fewer.
    """
    devices = jax.local_devices()
    if num_devices > len(devices):
        raise ValueError(
            f"lanes.devices: {num_devices} exceeds the {len(devices)} {devices[0].platform} "
            f"devices of this machine; use 0 for all"
        )
    return devices[: num_devices or len(devices)]


def on_all(
    fn: Callable, devices: list[jax.Device], donate_argnums: tuple[int, ...] = ()
) -> Callable:
    """Maps `fn` over a leading device axis of every argument and result."""
    return jax.pmap(fn, devices=devices, donate_argnums=donate_argnums)


def compiler_options(device: jax.Device) -> dict[str, str]:
    """Returns XLA options for a device: on a CPU, the full width of its vectors (GELU: 1.3x)."""
    return {"xla_cpu_prefer_vector_width": "512"} if device.platform == "cpu" else {}


def free_memory(device: jax.Device) -> int | None:
    """Returns bytes that may be used on a device; of a CPU, its share of the free memory."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    if device.platform == "cpu" and hasattr(os, "sysconf"):
        try:
            pages = os.sysconf("SC_AVPHYS_PAGES")
        except (ValueError, OSError):
            return None
        return pages * os.sysconf("SC_PAGE_SIZE") // jax.local_device_count()
    return None
