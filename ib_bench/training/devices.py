"""The only file that knows devices: which there are, how a function runs on all of them at once."""

import gc
import os
from collections.abc import Callable
from typing import Any

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


def require_platform(platform: str | None) -> None:
    """Sees to it that JAX uses a platform, or says why it does not; the first use of a device.

    Args:
      platform: "cpu", "gpu" or "tpu"; None takes what JAX finds.

    Raises:
      ValueError: JAX finds another one, or none. Nothing falls back to a CPU in silence.
    """
    if platform == "cpu":
        jax.config.update("jax_platforms", "cpu")
    try:
        found = jax.local_devices()[0].platform
    except RuntimeError as error:
        raise ValueError(f"platform: JAX finds no device: {error}") from None
    if platform and found != platform:
        fix = {
            "gpu": "install jax[cuda12] and see that nvidia-smi lists a GPU",
            "tpu": "install jax[tpu] and see that no other process holds the TPU",
            "cpu": "unset JAX_PLATFORMS",
        }[platform]
        raise ValueError(f"platform: asked for {platform}, JAX finds {found}; {fix}")


def describe_devices() -> str:
    """Names the local devices: "2 x cpu", "8 x NVIDIA H100 80GB HBM3"."""
    devices = jax.local_devices()
    return f"{len(devices)} x {devices[0].device_kind}"


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


def forget_compiled() -> None:
    """Lets go of compiled programs that nobody uses any more.

    JAX would keep them, some 800 memory maps each on a CPU, and a process may have 65,530: a study
    of eighty programs would end in a segmentation fault.
    """
    gc.collect()
    jax.clear_caches()


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


def lower_on_all(
    fn: Callable, devices: list[jax.Device], donate_argnums: tuple[int, ...], *shapes: Any
) -> jax.stages.Lowered:
    """Lowers `fn`, mapped over a leading device axis of every argument and result.

    Args:
      fn: what each device does.
      devices: of this process.
      donate_argnums: arguments whose memory the results may take.
      *shapes: ShapeDtypeStructs of the arguments (pytrees), the device axis first.
    """
    # With several processes pmap takes abstract arguments of this kind alone.
    shapes = jax.tree.map(lambda leaf: jax.core.ShapedArray(leaf.shape, leaf.dtype), shapes)
    return jax.pmap(fn, devices=devices, donate_argnums=donate_argnums).lower(*shapes)


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
