"""In the host: what an exception means, and how outputs are described and copied out."""

from __future__ import annotations

import dis
import errno
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
import triton.language
from triton.runtime.errors import InterpreterError

from verifier.candidate.arena import ALIGN_BYTES, MAX_OUTPUTS, round_up
from verifier.candidate.dtypes import NAMES
from verifier.candidate.errors import SurroundingsError, UnsupportedError
from verifier.conventions.errors import CompileError, EntryError, OutputError
from verifier.subject import ReplyKind

DETAIL_CHARS: Final = 2000
_NO_DEVICE: Final = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "CUDA_HOME environment variable is not set",
    "0 active drivers",
    "Expected a cuda device",
)
_NO_MEMORY: Final = ("can't allocate memory", "out of memory", "not enough memory", "bad_alloc")

Range = tuple[int, int]


def failure_classify(error: BaseException, *, loading: bool) -> tuple[ReplyKind, str]:
    """What kind of end an exception is, and one line that says so."""
    detail = _describe(error)
    chain = list(_chain(error))
    interpreted = any(isinstance(link, InterpreterError) for link in chain)
    if any(_out_of_memory(link) for link in chain):
        return ReplyKind.MEMORY, detail
    reason = next((_text(link) for link in chain if _unsupported(link)), "")
    reason = reason or next(filter(None, map(_asks_for_a_gpu, chain)), "")
    if interpreted:
        reason = reason or next(filter(None, map(_plain_number, chain)), "")
    if reason:
        return ReplyKind.UNSUPPORTED, reason[:DETAIL_CHARS]
    if loading:
        return ReplyKind.LOAD_FAILED, detail
    if isinstance(error, OutputError):
        return ReplyKind.BAD_OUTPUT, str(error)[:DETAIL_CHARS]
    if not isinstance(error, Exception) or _says(error, ("CUDA error",)):
        return ReplyKind.CRASHED, detail
    return ReplyKind.RAISED, detail


def is_our_refusal(error: BaseException) -> bool:
    """Whether it ended in something that we ourselves say does not exist here."""
    chain = list(_chain(error))
    ours = any(isinstance(link, UnsupportedError) for link in chain)
    return ours and not any(isinstance(link, SurroundingsError) for link in chain)


def is_surroundings(error: BaseException) -> bool:
    """Whether a launch ended in an error of the system's that none of the kernel's code had a part
    in: Triton's cache, its compiler's files, its programs."""
    if _out_of_memory(error):
        return False
    return isinstance(error, OSError) and all(map(_is_machinery, _modules(error)))


def is_deliberate(error: BaseException) -> bool:
    """Whether a statement that only raises has raised it, in code that is nobody's but the
    kernel's."""
    link = error.__traceback__
    while link is not None and link.tb_next is not None:
        link = link.tb_next
    if link is None or _is_machinery(str(link.tb_frame.f_globals.get("__name__", ""))):
        return False
    code = link.tb_frame.f_code.co_code
    return 0 <= link.tb_lasti < len(code) and code[link.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def interpreters_perhaps(error: Exception) -> bool:
    """Whether what rose out of a launch may be the interpreter's own failure: no assertion, which
    the kernel made or the device would, and nothing that a grid or a hook has raised."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, AssertionError):
            return False
        link = link.__cause__
    inside = isinstance(error, InterpreterError)  # made of what rises in a kernel's body
    return inside or all(map(_is_machinery, _modules(error)))


def _modules(error: BaseException) -> Iterator[str]:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        yield str(frame.f_globals.get("__name__", ""))


def _is_machinery(module: str) -> bool:
    root = module.partition(".")[0]
    return root in ("verifier", "triton", "torch", "numpy") or root in sys.stdlib_module_names


def _describe(error: BaseException) -> str:
    if isinstance(error, EntryError | CompileError):
        return _safe(str(error))[:DETAIL_CHARS]
    lines = traceback.format_exception_only(error)
    return _safe("".join(lines).strip()[-DETAIL_CHARS:]) or type(error).__name__


def _safe(text: str) -> str:
    """No lone surrogates: they have no UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(20):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def _says(error: BaseException, phrases: Sequence[str]) -> bool:
    text = _text(error)
    return isinstance(error, Exception) and any(phrase in text for phrase in phrases)


def _text(error: BaseException) -> str:
    """Its message; exceptions of hostile kernels may refuse to be printed."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return f"{type(error).__name__} that cannot be printed"


def _out_of_memory(error: BaseException) -> bool:
    no_memory = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return no_memory or isinstance(error, MemoryError) or _says(error, _NO_MEMORY)


def _unsupported(error: BaseException) -> bool:
    return (
        isinstance(error, UnsupportedError)
        or (isinstance(error, NotImplementedError) and "interpreter mode" in _text(error))
        or (isinstance(error, AttributeError) and "'InterpreterBuilder' object" in _text(error))
        or _says(error, _NO_DEVICE)
    )


_GPU_ASKED: Final = re.compile(r"\bis_cuda\b|\bcuda\b|\bgpu\b", re.IGNORECASE)


def _asks_for_a_gpu(error: BaseException) -> str:
    """Why a kernel that insists on a GPU, in its own words or in an assertion without any, is not
    to blame where there is none."""
    if torch.cuda.is_initialized() or not isinstance(error, Exception):  # type: ignore[no-untyped-call]
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    line = (frames[-1].line or "") if frames else ""
    asked = line if isinstance(error, AssertionError) and not _text(error) else _text(error)
    return f"it asks for a GPU: {asked}" if _GPU_ASKED.search(asked) else ""


_NUMBER_ATTRIBUTE: Final = re.compile(r"'(?:int|float|bool)' object has no attribute '(\w+)'")


def _plain_number(error: BaseException) -> str:
    """Why a kernel that asks a number for what every tensor has cannot be blamed: compiled, the
    index of a loop over tl.range and the like are tensors; in the interpreter they are numbers."""
    found = _NUMBER_ATTRIBUTE.search(_text(error)) if isinstance(error, AttributeError) else None
    if found is None or not hasattr(triton.language.tensor, found[1]):
        return ""
    return f"Triton's interpreter has a plain number there: {_text(error)}"


class OutputRegion:
    """The host's view of the arena for outputs; a cursor runs through it once per call."""

    def __init__(self, arena: torch.Tensor, limit_bytes: int) -> None:
        self._arena = arena
        self._limit_bytes = limit_bytes
        self._cursor = 0

    def reset(self) -> None:
        self._cursor = 0

    def put(self, outputs: Sequence[torch.Tensor]) -> list[dict[str, Any]]:
        """Copy tensors out, contiguous. Raises OutputError for more than is allowed."""
        total = sum(tensor.numel() * tensor.itemsize for tensor in outputs)
        if len(outputs) > MAX_OUTPUTS:
            raise OutputError(f"it returned {len(outputs)} tensors; {MAX_OUTPUTS} are allowed")
        if total > self._limit_bytes:
            raise OutputError(f"it returned {total} bytes; {self._limit_bytes} are allowed")
        return [self._put(tensor.detach()) for tensor in outputs]

    def _put(self, tensor: torch.Tensor) -> dict[str, Any]:
        if tensor.dtype not in NAMES:
            raise OutputError(f"it returned a tensor of dtype {tensor.dtype}")
        nbytes = tensor.numel() * tensor.itemsize
        start, self._cursor = self._cursor, round_up(self._cursor + nbytes, ALIGN_BYTES)
        if nbytes:
            plain = tensor.resolve_conj().resolve_neg().contiguous()
            # Not reshape: one value counts as contiguous whatever its stride, and keeps it.
            flat = plain.as_strided((plain.numel(),), (1,))
            raw = flat.view(torch.uint8)
            self._arena[start : start + nbytes].copy_(raw)
        return {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "start": start}


def output_info(
    position: int,
    outputs: Sequence[torch.Tensor],
    arguments: Sequence[Range | None],
    previous: Sequence[torch.Tensor],
) -> dict[str, Any]:
    """What only the host can see of one output."""
    tensor = outputs[position]
    own = extent(tensor)
    others = [extent(other) for other in outputs]
    return {
        "stride": list(tensor.stride()),
        "device": str(tensor.device),
        "exact": type(tensor) is torch.Tensor,
        "requires_grad": tensor.requires_grad,
        "alias_inputs": [i for i, r in enumerate(arguments) if _overlap(own, r)],
        "alias_outputs": [i for i, r in enumerate(others) if i != position and _overlap(own, r)],
        "alias_previous": any(_overlap(own, extent(other)) for other in previous),
    }


def extent(tensor: torch.Tensor) -> Range | None:
    """First address and end of the memory that a tensor's elements span; None if it has none."""
    if tensor.numel() == 0:
        return None
    span = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    return tensor.data_ptr(), tensor.data_ptr() + span * tensor.itemsize


def _overlap(one: Range | None, other: Range | None) -> bool:
    return one is not None and other is not None and one[0] < other[1] and other[0] < one[1]
