"""A verdict as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from verifier.pipeline import GATES
from verifier.records import (
    NOT_ASKED,
    Counterexample,
    DeepResult,
    GateId,
    GateResult,
    GateStatus,
    Measurement,
    Verdict,
)
from verifier.wording import Faults, deep_finding_text, deep_sentence, in_one_line, value_text

GLYPHS: Final = {
    GateStatus.PASS: "✓",
    GateStatus.FAIL: "✕",
    GateStatus.NOT_APPLICABLE: "\N{EN DASH}",
    GateStatus.INCONCLUSIVE: "?",
    GateStatus.ERROR: "!",
}
COLOURS: Final = {
    GateStatus.PASS: "32",
    GateStatus.FAIL: "31",
    GateStatus.NOT_APPLICABLE: "90",
    GateStatus.INCONCLUSIVE: "33",
    GateStatus.ERROR: "35",
}
DETAIL_WIDTH: Final = 300
"""Characters of a reason where nothing stands beside it."""
NAMES: Final = {gate.info.id: gate.info.name for gate in GATES}


def one_line(text: str, width: int) -> str:
    """The text on one line without control characters, cut to a width."""
    return printable_line(in_one_line(text, width))


def printable_line(line: str) -> str:
    """The line without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in line)


def _paint(text: str, status: GateStatus, colour: bool) -> str:
    return f"\x1b[{COLOURS[status]}m{text}\x1b[0m" if colour else text


def gate_line(result: GateResult, *, colour: bool, same_as: GateId | None = None) -> str:
    """One row of the table; a reason that an earlier gate gave is not told again."""
    mark = _paint(GLYPHS[result.status], result.status, colour)
    exact = "exact" if result.hard else ""
    head = f" {mark} {result.gate.value:>3}  {NAMES[result.gate]:<22} {result.summary:<18}"
    reason = f"same as {same_as}" if same_as else one_line(result.reason, 90)
    return f"{head} {result.duration_ms:>7.0f} ms  {exact:<5} {reason}".rstrip()


def _gate_lines(result: GateResult, *, colour: bool, same_as: GateId | None) -> Iterator[str]:
    yield gate_line(result, colour=colour, same_as=same_as)
    if result.counterexample is not None:
        yield from _example_lines(result, result.counterexample)
    lines = result.reason.splitlines()
    if len(lines) > 1 and same_as is None:
        yield from (f"         | {printable_line(line)}".rstrip() for line in lines)


def _example_lines(result: GateResult, example: Counterexample) -> Iterator[str]:
    case = example.case
    dims = ", ".join(f"{name}={size}" for name, size in case.dims.items())
    dtypes = ", ".join(case.dtypes.values())
    where = f"{result.gate.value} {case.label}: {dims} {dtypes}"
    yield f"      {where} fill={case.fill} seed={case.seed}"
    if example.output:
        place = f"{example.output}{list(example.index)}"
        expected, got = (_value(example, name) for name in ("expected", "got"))
        yield f"         {place}: expected {expected}, got {got}"


def _value(example: Counterexample, name: str) -> str:
    """The expected value or the one that came, with the digits of its dtype where that is known."""
    dtype = next((one.dtype for one in example.slices if one.name == name), "")
    return value_text(str(getattr(example, name)), dtype)


def _measurement_line(row: Measurement) -> str:
    half = (row.high_ms - row.low_ms) / 2
    speedup = f"  {row.speedup:.2f}x eager" if row.speedup is not None else ""
    note = f"  ({row.note})" if row.note else ""
    return (
        f"   {row.workload:<12} {row.subject:<8} {row.latency_ms:.4g} ms ±{half:.2g}{speedup}{note}"
    )


def _deep_lines(results: Sequence[DeepResult]) -> Iterator[str]:
    """What the deep mode saw, if it was asked for."""
    for result in results:
        seconds = f"{result.duration_ms / 1e3:.1f} s" if result.duration_ms else ""
        said = one_line(deep_sentence(result), DETAIL_WIDTH)
        yield f"   {result.tool:<10} {result.status:<13} {seconds:>7}  {said}".rstrip()
        for finding in result.findings:
            yield f"      {one_line(deep_finding_text(finding), DETAIL_WIDTH)}"


def report_lines(verdict: Verdict, *, colour: bool = False) -> Iterator[str]:
    """The whole verdict, a finding first."""
    yield ""
    faults = Faults()
    for result in verdict.gates:
        same_as = faults.earlier(result.gate, result.status, result.reason)
        yield from _gate_lines(result, colour=colour, same_as=same_as)
    yield ""
    if verdict.loose is not None:
        word = "accepts" if verdict.loose.accepted else "rejects"
        yield f"   loose test {word} it  {one_line(verdict.loose.detail, 90)}".rstrip()
    yield from (_measurement_line(row) for row in verdict.measurements)
    yield from _deep_lines(verdict.deep)
    yield f"   {_sentence(verdict)}"
    yield from _unjudged_lines(verdict)
    yield f"   seed {verdict.seed} · {verdict.duration_ms / 1e3:.2f} s · {_where(verdict)}"


def _unjudged_lines(verdict: Verdict) -> Iterator[str]:
    """Cases of passed gates that were not judged: one line for each reason."""
    counts: dict[tuple[GateStatus, str], Counter[str]] = {}
    for result in verdict.gates:
        for note in result.notes if result.status is GateStatus.PASS else ():
            at = counts.setdefault((note.status, note.reason), Counter())
            at[result.gate.value] += note.count
    for (status, reason), at in counts.items():
        word = "left open" if status is GateStatus.INCONCLUSIVE else "not judged here"
        cases = "1 case" if at.total() == 1 else f"{at.total()} cases"
        yield f"   {word}: {cases} of {', '.join(at)}: {one_line(reason, 90)}"


def _where(verdict: Verdict) -> str:
    environment = verdict.environment
    return (
        f"{environment.device_name} ({environment.mode.value}) · torch {environment.torch} · "
        f"triton {environment.triton} · sandbox {environment.sandbox}"
    )


def _sentence(verdict: Verdict) -> str:
    counts = dict.fromkeys(GateStatus, 0)
    asked = [result for result in verdict.gates if result.reason != NOT_ASKED]
    for result in asked:
        counts[result.status] += 1
    parts = [
        f"{counts[GateStatus.PASS]} passed",
        f"{counts[GateStatus.FAIL]} failed",
        f"{counts[GateStatus.NOT_APPLICABLE]} not applicable",
    ]
    if counts[GateStatus.INCONCLUSIVE]:
        parts.append(f"{counts[GateStatus.INCONCLUSIVE]} inconclusive")
    if counts[GateStatus.ERROR]:
        parts.append(f"{counts[GateStatus.ERROR]} broken")
    if left := len(verdict.gates) - len(asked):
        parts.append(f"{left} {NOT_ASKED}")
    illusion = " An illusion: the loose test accepts it." if verdict.illusion else ""
    return f"{verdict.outcome.value.upper()}: {', '.join(parts)}.{illusion}"
