"""How findings are put into words, at the terminal and on the hub's pages alike.

On the standard library alone, so that Django may import it as it imports the records.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Final

from verifier.records import DeepFinding, DeepResult, GateId, GateStatus

LEAST_CAUSE: Final = 60
"""Characters that a head leaves to the cause behind it; a longer head is shortened or dropped."""
# nvcc, ptxas, gcc and MLIR all mark the line that matters so; 'ValueError:' is no such mark.
_COMPILER: Final = re.compile(r"\b(?:error|fatal)\s*:\s")
_CARET: Final = re.compile(r"\s*[\^~]+\s*")
TRACEBACK: Final = "Traceback (most recent call last)"


def head_and_cause(text: str) -> tuple[str, str]:
    """The first line of a message, and the one further down that says what is wrong.

    The cause is '' where the first line says it itself. Triton and Python put a listing with a
    caret in between, tracebacks end with the exception, compilers write 'error:'.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "", ""
    head, rest = lines[0].strip(), lines[1:]
    cause = _cause(head, rest).strip() if rest else ""
    return ("" if cause and head.startswith(TRACEBACK) else head), cause


def _cause(head: str, rest: list[str]) -> str:
    carets = [place for place, line in enumerate(rest) if _CARET.fullmatch(line)]
    if carets:
        after = rest[carets[-1] + 1 :]
        said = (line for line in after if not line[0].isspace())
        return next(said, after[-1] if after else rest[max(0, carets[-1] - 1)])
    marked = next((line for line in rest if _COMPILER.search(line)), "")
    if marked:
        return marked
    announces = head.endswith(":") or any(TRACEBACK in line for line in (head, *rest))
    return rest[-1] if announces else ""


def in_one_line(text: str, limit: int) -> str:
    """A reason of many lines in one: its head, then its cause, which is the last to be cut."""
    head, cause = head_and_cause(text)
    if not cause:
        return shortened(head, limit)
    starts = (head, _clause(head), "")
    whole = (start for start in starts if len(start) + 1 + len(cause) <= limit)
    roomy = (start for start in starts if limit - len(start) > LEAST_CAUSE)
    start = next(whole, next(roomy, ""))
    return shortened(f"{start} {cause}".strip(), limit)


def _clause(head: str) -> str:
    """'Triton's compiler refuses f:' out of '...: CompilationError: at 5:45:'."""
    first, colon, _ = head.partition(": ")
    return f"{first}:" if colon else head


def shortened(line: str, limit: int) -> str:
    """The line, cut with an ellipsis where it is longer than the limit."""
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


# Each gate draws its own sizes, so '[1], not [1, 1, 1]' and '[16], not [1, 1, 16]' say the same;
# their ranks differ from nothing else than the kernel. Other figures are findings and stay.
_SHAPE: Final = re.compile(r"\[\d+(?:, \d+)*\]")
SHORTEST_FAULT: Final = 12
"""A text shorter than this is contained in too many others by chance."""
CAUSES: Final = frozenset({GateStatus.FAIL.value, GateStatus.ERROR.value})


class Faults:
    """The faults that were said already: a kernel of the wrong shape fails many gates alike."""

    def __init__(self) -> None:
        self._first: dict[str, GateId] = {}

    def earlier(self, gate: str, status: str, reason: str) -> GateId | None:
        """The gate that gave this reason before, if one did; else it is remembered as the first.

        A reason may say more around it, such as which other gate judges it.
        """
        text = fault_of(reason)
        for said, first in self._first.items():
            if said in text and first != gate:
                return first
        if status in CAUSES and len(text) >= SHORTEST_FAULT:
            self._first.setdefault(text, GateId(gate))
        return None


def fault_of(reason: str) -> str:
    """The reason without the sizes that differ from case to case."""
    return _SHAPE.sub(lambda found: re.sub(r"\d+", "n", found[0]), in_one_line(reason, 1000))


DIGITS: Final = {"float64": 17, "float32": 9, "float16": 5, "bfloat16": 5}
"""Significant digits that tell any two values of a dtype apart."""


def value_text(text: str, dtype: str) -> str:
    """A value with no more digits than its dtype has; what is no plain number stays as it is."""
    value, digits = number(text), DIGITS.get(dtype)
    if digits is None or value is None or not math.isfinite(value):
        return text
    short = f"{value:.{digits}g}"
    if float(short) == value:
        return text
    return short if any(mark in short for mark in ".e") else f"{short}.0"


def same_value(expected: str, got: str, dtype: str) -> bool:
    """Whether a value of the dtype is the expected one, which may be spelled with more digits.

    NaN is the same as NaN, and -0.0 as 0.0.
    """
    wanted, value = number(expected), number(got)
    if wanted is None or value is None or "float" not in dtype:
        return expected == got
    wanted, value = rounded(wanted, dtype), rounded(value, dtype)
    return wanted == value or (math.isnan(wanted) and math.isnan(value))


_PACKED: Final = {"float16": "<e", "float32": "<f", "bfloat16": "<f"}


def rounded(value: float, dtype: str) -> float:
    """The value of the dtype that is nearest; a dtype that is not known rounds nothing."""
    packed = _PACKED.get(dtype)
    if packed is None or not math.isfinite(value):
        return value
    try:
        data = struct.pack(packed, value)
    except OverflowError:
        return math.copysign(math.inf, value)
    if dtype == "bfloat16":  # the upper half of a float32, rounded to even
        bits = int.from_bytes(data, "little")
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        data = bits.to_bytes(4, "little")
    return float(struct.unpack(packed, data)[0])


def number(text: str) -> float | None:
    """The float that the text spells, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def deep_sentence(result: DeepResult) -> str:
    """What one tool of the deep mode saw, in one sentence."""
    calls = f"{len(result.cases)} call{'s' if len(result.cases) != 1 else ''}"
    made = f"{calls} ({', '.join(result.cases)})" if result.cases else ""
    counts = [f"{result.count} reported"] if result.count else []
    counts += [f"{result.elsewhere} more in a library's kernels"] if result.elsewhere else []
    return "; ".join(filter(None, (", ".join(counts), made, result.reason)))


def deep_finding_text(finding: DeepFinding) -> str:
    """One finding: what, where in the source, by which thread, how often."""
    places = [finding.source] if finding.source else []
    places += [f"thread {_axes(finding.thread)}"] if finding.thread else []
    places += [f"block {_axes(finding.block)}"] if finding.block else []
    where = f" ({', '.join(places)})" if places else ""
    level = f"{finding.level}: " if finding.level not in ("", "error") else ""
    detail = f"; {finding.detail}" if finding.detail else ""
    kernel = f"{finding.kernel}: " if finding.kernel else ""
    return f"{kernel}{level}{finding.what}{where}{detail}, {finding.count}x"


def _axes(numbers: tuple[int, ...]) -> str:
    return f"({','.join(map(str, numbers))})"
