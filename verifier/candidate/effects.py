"""In the host: global state that a kernel has no business changing, compared before and after."""

from __future__ import annotations

import ctypes
import operator
import os
import random
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import torch

State = dict[str, Any]


def _numpy_random() -> Any:
    kind, keys, *rest = np.random.get_state()
    return kind, bytes(np.asarray(keys)), *rest


def _flags() -> State:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    readers: dict[str, Callable[[], Any]] = {
        "default dtype": torch.get_default_dtype,
        "default device": torch.get_default_device,
        "grad mode": torch.is_grad_enabled,
        "inference mode": torch.is_inference_mode_enabled,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
        "float32 matmul precision": torch.get_float32_matmul_precision,
        "TF32 in matmul": lambda: matmul.allow_tf32,
        "fp16 reduced precision": lambda: matmul.allow_fp16_reduced_precision_reduction,
        "bf16 reduced precision": lambda: matmul.allow_bf16_reduced_precision_reduction,
        "TF32 in cuDNN": lambda: cudnn.allow_tf32,
        "cuDNN enabled": lambda: cudnn.enabled,
        "cuDNN benchmark": lambda: cudnn.benchmark,
        "cuDNN deterministic": lambda: cudnn.deterministic,
        "torch threads": torch.get_num_threads,
        "autocast": lambda: (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "flush denormals": lambda: float(torch.tensor(2.0**-140) * 2.0) == 0.0,
        "torch modes": lambda: torch._C._len_torch_function_stack(),
    }
    return {name: _read(reader) for name, reader in readers.items()}


def _read(reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except (RuntimeError, AttributeError) as error:  # some getters refuse after odd settings
        return type(error).__name__


def _random_states() -> State:
    states: State = {
        "torch random state": bytes(torch.get_rng_state().numpy()),
        "numpy random state": _numpy_random(),
        "python random state": random.getstate(),
    }
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["CUDA random state"] = bytes(torch.cuda.get_rng_state().numpy())
        states["current CUDA stream"] = torch.cuda.current_stream().cuda_stream
        states["current CUDA device"] = torch.cuda.current_device()
    return states


def _process() -> State:
    state: State = {
        "working directory": _read_os(os.getcwd),
        "recursion limit": max(sys.getrecursionlimit(), _COMPILERS_RECURSION),
        "trace or profile function": (sys.gettrace(), sys.getprofile()),
        "signal handlers": tuple(signal.getsignal(n) for n in (signal.SIGINT, signal.SIGALRM)),
        "python threads": sorted(t.name for t in threading.enumerate()),
        "running threads": len(sys._current_frames()),
        "raw threads": _thread_count(),
        "umask": _umask(),
    }
    mine = ((k, v) for k, v in os.environ.items() if k not in _COMPILERS_VARIABLES)
    return state | {f"environment variable {k}": v for k, v in mine}


_COMPILERS_RECURSION: Final = 2000
_COMPILERS_VARIABLES: Final = frozenset(
    {
        "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",
        "KMP_DUPLICATE_LIB_OK",
        "TRITON_CACHE_DIR",
        "TRITON_PTXAS_PATH",
        "TRITON_LIBDEVICE_PATH",
    }
)
"""What torch.compile itself sets when it first compiles, and that matters to nobody else."""


def _read_os(reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except OSError as error:
        return error.errno


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _thread_count() -> int:
    """Native threads, where they say something: a CUDA context starts its own."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return 0
    with suppress(OSError):
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - twice a call
    return 0


def written_late(before: State, outputs: Sequence[torch.Tensor]) -> bool:
    """Wait for native threads that a call has left, and say whether they wrote to its outputs.

    A thread that Python has joined is no longer one of its own, and yet the kernel of the system
    may still be ending it. Such a thread runs nothing. One that has not begun to run looks the
    same, and would show here.
    """
    if _thread_count() <= before.get("raw threads", 0):
        return False
    running, written = before.get("running threads"), _bytes(outputs)
    deadline = time.monotonic() + _THREAD_ENDS_S
    while _thread_count() > before.get("raw threads", 0) and time.monotonic() < deadline:
        if len(sys._current_frames()) != running:  # it has work to do: the state will show it
            break
        time.sleep(0.001)
    return _bytes(outputs) != written


_THREAD_ENDS_S: Final = 0.1


def _bytes(outputs: Sequence[torch.Tensor]) -> list[bytes]:
    """Without letting another thread of Python's run meanwhile."""
    with suppress(NotImplementedError, RuntimeError):  # not every tensor has a storage
        storages = [tensor.untyped_storage() for tensor in outputs if tensor.device.type == "cpu"]
        return [ctypes.string_at(s.data_ptr(), s.nbytes()) for s in storages if s.nbytes()]
    return []


def state_take() -> State:
    """A comparable picture of the state that kernels must leave alone."""
    return _flags() | _random_states() | _process()


def rehearse() -> None:
    """What torch has to say about some flags it says once, and not to a kernel. (To be deaf at each
    look would make Python forget which of a kernel's own warnings it has shown.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state_take()


def state_changes(before: State, after: State) -> list[str]:
    """Names of what differs, in order."""
    return [name for name in before | after if before.get(name) != after.get(name)]


_MODULES: Final = (  # noqa: SIM905 - reads better as text
    "torch torch.nn torch.nn.functional torch.cuda torch.cuda.streams torch.random torch.linalg "
    "torch.autograd torch.autograd.function torch.testing torch.special torch.fft "
    "triton triton.testing triton.runtime triton.runtime.jit triton.runtime.autotuner "
    "triton.runtime.interpreter triton.language triton.language.core triton.language.math "
    "triton.language.standard "
    "time numpy numpy.random numpy.linalg numpy.testing math os random gc builtins inspect"
).split()


_FOLLOWS: Final = frozenset({"torch.Storage"})
"""What torch itself sets anew (here with the default dtype)."""


def hooks() -> list[str]:
    """What would run beside a launch, or in the middle of it."""
    found = ["trace or profile function"] if sys.gettrace() or sys.getprofile() else []
    return found + ["numpy print formatter"] * bool(np.get_printoptions()["formatter"])


class _Owner:
    """A module or a type, and those of its members that a checker relies on."""

    def __init__(self, name: str, members: Any, watched: dict[str, Any]) -> None:
        self._name, self._members, self._watched = name, members, watched
        self._met = list(members.values())

    def differences(self) -> Iterable[str]:
        """After each call, over thousands of members: one by one only if any has changed."""
        members, met = self._members, self._met
        if len(members) == len(met) and all(map(operator.is_, members.values(), met)):
            return ()
        get, watched = members.get, self._watched.items()
        found = [f"{self._name}.{key}" for key, value in watched if get(key) is not value]
        if not found:
            self._met = list(members.values())
        return found


class Patches:
    """Identities of the functions and types that a checker relies on, before the kernel loads."""

    def __init__(self) -> None:
        self._owners: list[_Owner] = []
        self._names: list[str] = []
        self._functions: list[types.FunctionType] = []
        self._codes: list[types.CodeType] = []
        self._modules = {name: sys.modules[name] for name in _MODULES if name in sys.modules}
        for name, module in self._modules.items():
            self._record(name, vars(module))
        for name, module in _our_own():
            self._record(name, vars(module))
        for kind in _types():
            self._record(f"{kind.__module__}.{kind.__qualname__}", kind.__dict__)

    def _record(self, owner: str, members: Any) -> None:
        watched = {
            key: value
            for key, value in members.items()
            if _relied_on(value) and f"{owner}.{key}" not in _FOLLOWS
        }
        self._owners.append(_Owner(owner, members, watched))
        for key, value in watched.items():
            if isinstance(value, types.FunctionType):
                self._names.append(f"{owner}.{key}")
                self._functions.append(value)
                self._codes.append(value.__code__)

    def changed(self) -> list[str]:
        """Names of what is no longer what it was."""
        return [f"patched {name}" for name in self._differences()]

    def _differences(self) -> Iterable[str]:
        yield from (n for n, module in self._modules.items() if sys.modules.get(n) is not module)
        for owner in self._owners:
            yield from owner.differences()
        if not all(map(operator.is_, map(_code_of, self._functions), self._codes)):
            triples = zip(self._names, map(_code_of, self._functions), self._codes, strict=True)
            yield from (name for name, new, old in triples if new is not old)


_code_of: Final = operator.attrgetter("__code__")


def _relied_on(value: Any) -> bool:
    return callable(value) or isinstance(value, property | types.GetSetDescriptorType)


def _our_own() -> list[tuple[str, types.ModuleType]]:
    """The judge's modules in this process: a kernel can reach them, and must not."""
    return [(name, m) for name, m in sys.modules.items() if name.split(".")[0] == "verifier"]


def _our_classes() -> Iterator[type]:
    for name, module in _our_own():
        kinds = (value for value in vars(module).values() if isinstance(value, type))
        yield from (kind for kind in kinds if kind.__module__ == name)


def _types() -> Iterable[type]:
    from triton.language.core import tensor
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import FunctionRewriter, InterpretedFunction, TensorHandle
    from triton.runtime.jit import JITFunction, KernelInterface

    yield from _our_classes()
    yield from (torch.Tensor, torch._C.TensorBase, torch.cuda.Event, torch.cuda.Stream)
    yield from (torch.nn.Module, torch.autograd.Function, torch.UntypedStorage)
    yield from (Autotuner, InterpretedFunction, JITFunction, KernelInterface)
    yield from (FunctionRewriter, TensorHandle, tensor)
