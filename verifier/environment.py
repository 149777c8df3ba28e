"""Where and with what a verdict is reached."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import torch

from verifier.records import DeviceMode, Environment
from verifier.subject import InfrastructureError


def choose_device(wanted: str) -> tuple[DeviceMode, torch.device]:
    """The mode and torch device for 'auto', 'cpu' or 'cuda:N'.

    Raises InfrastructureError for a CUDA device that is not there.
    """
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return DeviceMode.CPU_INTERPRET, torch.device("cpu")
    device = torch.device("cuda:0" if wanted in {"auto", "cuda"} else wanted)
    if device.type != "cuda" or not torch.cuda.is_available():
        raise InfrastructureError(f"no device {wanted!r} on this machine; try --device cpu")
    if (device.index or 0) >= torch.cuda.device_count():
        raise InfrastructureError(f"{wanted!r}: this machine has {torch.cuda.device_count()} GPUs")
    return DeviceMode.CUDA, device


def _triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "none"
    return str(triton.__version__)


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout else ""


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a kernel file
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def read_environment(mode: DeviceMode, device: torch.device, sandbox: str) -> Environment:
    """The environment record of this process and device."""
    if mode is DeviceMode.CUDA:
        properties = torch.cuda.get_device_properties(device)
        name, uuid = properties.name, f"GPU-{properties.uuid}"
        capability, driver = f"sm_{properties.major}{properties.minor}", _driver()
    else:
        name, uuid, capability, driver = _cpu_name(), "", "", ""
    return Environment(
        mode=mode,
        device_name=name,
        device_uuid=uuid,
        python=sys.version.split()[0],
        torch=str(torch.__version__),
        triton=_triton_version(),
        numpy=str(np.__version__),
        platform=platform.platform(),
        sandbox=sandbox,
        driver=driver,
        capability=capability,
        cuda=str(torch.version.cuda or ""),
    )
