"""Which device files one GPU needs, and the environment that makes it cuda:0 in the sandbox."""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CONTROL: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_PASSED: Final = (
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "TORCH_CUDA_ARCH_LIST",
    "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER",
)
_BLOCKING_SYNC: Final = 4
"""CU_CTX_SCHED_BLOCKING_SYNC (CUDA Driver API, cuDevicePrimaryCtxSetFlags)."""
_PROC: Final = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True, slots=True)
class Gpu:
    """What of the machine's GPU hardware the sandbox shows."""

    nodes: tuple[str, ...]
    environment: dict[str, str]


def gpu_find(device: str) -> Gpu:
    """The device files for 'cuda:N' (N as this process counts).

    Only that GPU's own file where its number can be told for certain, else all of them and
    CUDA_VISIBLE_DEVICES, which the host honours before any kernel is loaded.
    """
    index = int(device.partition(":")[2] or 0)
    visible = [
        t.strip() for t in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if t.strip()
    ]
    token = visible[index] if index < len(visible) else str(index)
    control = [f"/dev/{name}" for name in _CONTROL if Path(f"/dev/{name}").exists()]
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    every = sorted(str(p) for p in Path("/dev").glob("nvidia[0-9]*"))
    minor = _minor_of(token) if len(every) > 1 else None
    if len(every) == 1:
        return Gpu((*every, *control), passed)
    if minor is not None and f"/dev/nvidia{minor}" in every:
        return Gpu((f"/dev/nvidia{minor}", *control), passed)
    return Gpu((*every, *control), passed | {"CUDA_VISIBLE_DEVICES": token})


def wait_asleep(index: int) -> None:
    """Whoever waits for this device sleeps until it is done, instead of asking again and again:
    that core compiles a neighbour's kernel meanwhile. Before the process first uses the device; a
    driver that cannot do it leaves it undone."""
    with suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxSetFlags_v2(index, _BLOCKING_SYNC)


def _minor_of(token: str) -> int | None:
    """The device minor of the GPU with this UUID. A bare number depends on CUDA's own ordering."""
    for file in _PROC.glob("*/information"):
        text = file.read_text(errors="replace")
        uuid = re.search(r"GPU UUID:\s*(\S+)", text)
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        if uuid and minor and uuid[1].startswith(token) and token.startswith("GPU-"):
            return int(minor[1])
    return None
