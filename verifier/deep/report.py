"""What compute-sanitizer writes: its XML records and the summary at the end of its text.

Both files were written by the tool alone, but names of kernels and files in them are the kernel's.
So the XML is read as data of limited size without entities, and what does not add up raises.
Elements as in "Error suppression" of the Compute Sanitizer manual and as versions 2025.3 to 2026.4
write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from verifier.records import DeepFinding

MAX_FINDINGS: Final = 8
_MAX_ACCESSES: Final = 3
_TEXT_CHARS: Final = 300
_ROOT: Final = "ComputeSanitizerOutput"
_SUMMARY: Final = re.compile(
    r"^=+ (?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed.*)$",
    re.MULTILINE,
)
_TROUBLE: Final = re.compile(
    r"^=+ +(.*(?:Internal Sanitizer Error|Target application terminated|didn't terminate|"
    r"Unable to|[Cc]ommunication|out of memory).*)$",
    re.MULTILINE,
)
_LIBRARIES: Final = re.compile(
    r"^lib(?:torch|c10|cublas|cudnn|cusparse|cusolver|cufft|curand|nccl|nvJitLink|cutensor)"
)
_DRIVERS: Final = re.compile(r"^lib(?:cuda|cudart|nvrtc)\b")


class ReportError(ValueError):
    """The files are no report of a run that ended well; the message says why."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run's files say: reports of the kernel's own launches, and how many of libraries'."""

    count: int
    findings: tuple[DeepFinding, ...]
    elsewhere: int


def read_report(xml: bytes, text: bytes, source: str) -> Report:
    """The report in the two files of one run of a kernel with this source. Raises ReportError."""
    total = _summary(text.decode(errors="replace"))
    records = list(_records(xml))
    if (total > 0) != bool(records):
        raise ReportError(f"the tool counts {total} errors and describes {len(records)}")
    own = [record for record in records if not _is_librarys(record, source)]
    # The tool stops describing errors at a limit of its own, but goes on counting them.
    beyond = max(0, total - len(records)) if own else 0
    findings = _grouped(_finding(record) for record in own)
    return Report(len(own) + beyond, findings, len(records) - len(own))


def _summary(text: str) -> int:
    """How many errors the tool counts."""
    trouble = _TROUBLE.search(text)
    if trouble:
        raise ReportError(f"the tool says: {_one_line(trouble[1])}")
    counts = _SUMMARY.findall(text)
    if len(counts) != 1:
        raise ReportError("the tool's text has no summary, so it did not see the end")
    return int("".join(counts[0]))


def _records(xml: bytes) -> Iterator[Element]:
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        raise ReportError("the report declares entities")
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - no entities, and of limited size
    except ElementTree.ParseError as error:
        raise ReportError(f"the report is no XML: {error}") from error
    if root.tag != _ROOT:
        raise ReportError(f"the report is no {_ROOT}")
    yield from root.iter("record")


def _is_librarys(record: Element, source: str) -> bool:
    """Whether it was a library of the framework's that launched what is reported: by the first
    module on the host's stack that is not the driver, which no name of a kernel has a part in.
    Without a stack, which racecheck does not give: by whether the name stands in the source."""
    if record.find("hostStack") is None:
        name = re.split(r"[<(]", _text(record, ".//where/func"))[0].split("::")[-1]
        return bool(name) and name not in source
    for module in record.iterfind("hostStack/frame/module"):
        name = PurePosixPath((module.text or "").strip()).name
        if name and not _DRIVERS.match(name):
            return bool(_LIBRARIES.match(name))
    return False


def _finding(record: Element) -> DeepFinding:
    what = _text(record, "what/text")
    return DeepFinding(
        what=what or _text(record, "kind") or "an error without words",
        kernel=_text(record, ".//where/func"),
        space=_text(record, "what/space").strip("_"),
        level=_text(record, "level").lower(),
        thread=_axes(record.find(".//threadIdx")),
        block=_axes(record.find(".//blockIdx")),
        source=_source(record.find(".//where")),
        detail=_race(record) or _copy(record) or _text(record, "what/type"),
    )


def _race(record: Element) -> str:
    """Of a race: the access that is named, and those that may come before or after it."""
    first = _text(record, "what/source/direction").lower()
    others = [_access(one) for one in record.iterfind("what/destination")]
    more = f" and {len(others) - _MAX_ACCESSES} more" if len(others) > _MAX_ACCESSES else ""
    return f"{first} here, {', '.join(others[:_MAX_ACCESSES])}{more}" if first and others else ""


def _copy(record: Element) -> str:
    """Of a copy by the driver, such as ours of what was returned: from where on nobody had written
    what it copies."""
    names = ("errorAddress", "accessAddress", "accessSize")
    error, start, size = (_text(record, f"what/{name}") for name in names)
    if not all(number.isdigit() for number in (error, start, size)):
        return ""
    return f"nobody wrote byte {int(error) - int(start)} of {size} that were copied"


def _access(other: Element) -> str:
    place = _source(other.find("where"))
    at = f" at {place}" if place else ""
    return f"{_text(other, 'direction').lower()}{at} ({_text(other, 'count')} hazards)"


def _text(record: Element | None, path: str) -> str:
    found = None if record is None else record.find(path)
    return _one_line("" if found is None else found.text or "")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_TEXT_CHARS]


def _source(where: Element | None) -> str:
    path, line = _text(where, "path"), _text(where, "line")
    name = PurePosixPath(path).name
    return f"{name}:{line}" if name and line.isdigit() and line != "0" else name


def _axes(place: Element | None) -> tuple[int, ...]:
    if place is None:
        return ()
    numbers = [_text(place, axis) for axis in ("x", "y", "z")]
    return tuple(map(int, numbers)) if all(number.isdigit() for number in numbers) else ()


def _grouped(findings: Iterator[DeepFinding]) -> tuple[DeepFinding, ...]:
    """The first of each kind and place, with how many there are of it."""
    kinds: dict[Sequence[str], DeepFinding] = {}
    for one in findings:
        key = (one.kernel, re.sub(r"0x[0-9a-f]+|\d+", "#", one.what), one.source, one.level)
        known = kinds.setdefault(key, replace(one, count=0))
        kinds[key] = replace(known, count=known.count + 1)
    return tuple(kinds.values())[:MAX_FINDINGS]
