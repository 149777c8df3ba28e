"""In the host, on a machine without GPU: Triton's compiler, for a GPU that is not there.

Each launch is compiled to machine code and left out. What no target takes would run on none of
them, whatever the interpreter made of it: plain Python in a kernel's body, for instance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from verifier.candidate.errors import RefusedError, SurroundingsError
from verifier.candidate.replies import is_surroundings

TARGETS: Final = tuple(GPUTarget("cuda", capability, 32) for capability in (90, 100, 80))
"""Hopper first; a kernel may be written for one of the others alone."""
SHARED_BYTES: Final = {90: 227 << 10, 100: 227 << 10, 80: 163 << 10}
"""The most shared memory that a block may ask for, by compute capability (CUDA C++ Programming
Guide, technical specifications)."""
PROCESSORS: Final = 132
"""Multiprocessors of an H200, for wrappers that size a grid by them."""


class _Absent(DriverBase):  # type: ignore[misc]
    """The driver of GPUs that can be compiled for and do nothing, one for each target."""

    def __init__(self) -> None:
        self.device = 0
        self.utils = self

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return TARGETS[self.device]

    def get_current_device(self) -> int:
        return self.device

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_properties(self, device: int) -> dict[str, int]:
        shared = SHARED_BYTES[TARGETS[self.device].arch]
        return {"multiprocessor_count": PROCESSORS, "max_shared_mem": shared}

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return lambda *args, **kwargs: [0.0, 0.0, 0.0]


_ABSENT: Final = _Absent()


def adapt() -> None:
    """For good, in this process and its children."""
    driver.set_active(_ABSENT)
    JITFunction.run = _compiling(JITFunction.run)


def _compiling(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def compile_only(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        first: Exception | None = None
        for device in range(len(TARGETS)):
            _ABSENT.device = device
            try:
                return _fitting(run(function, *args, grid=grid, warmup=True, **kwargs))
            except Exception as error:
                if is_surroundings(error):
                    raise SurroundingsError(f"{type(error).__name__}: {error}") from error
                first = first or error
        assert first is not None  # noqa: S101 - there are targets
        raise RefusedError(f"{type(first).__name__}: {first}") from first

    return compile_only


def _fitting(compiled: Any) -> Any:
    """What was compiled. Raises OutOfResources where no block could be started."""
    needed, most = compiled.metadata.shared, SHARED_BYTES[TARGETS[_ABSENT.device].arch]
    if needed > most:
        raise OutOfResources(needed, most, "bytes of shared memory")
    return compiled
