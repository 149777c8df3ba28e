"""A kernel that a tool has started, with a stand-in for the tool: no GPU is asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from tests.verifier.deep.reports import TRITON, access, report, summary
from verifier.candidate.client import Sandbox
from verifier.candidate.deep import Ended
from verifier.deep import examine
from verifier.deep.examine import Call, Kernel, Run, conclude
from verifier.deep.tool import NAME, Check, Sanitizer
from verifier.pipeline import Cancelled
from verifier.records import DeepStatus, DeviceMode
from verifier.subject import Reply, ReplyKind

STAND_IN: Final = Path(__file__).with_name("stand_in.py")
HOW: Final[dict[str, Any]] = {"entry": "run", "convention": "function", "details": {}}
RETURNED: Final = {"usual": Reply(ReplyKind.RETURNED)}
SPY: Final = b"""
import os
print("========= ERROR SUMMARY: 0 errors")
def attempt(what, act):
    try:
        act()
    except OSError:
        return
    print("COULD", what)
for pid in [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
    tool = "stand-in" if "compute-sanitizer" in open(f"/proc/{pid}/cmdline").read() else "init"
    attempt(f"signal the {tool}", lambda: os.kill(int(pid), 0))
    attempt(f"open the memory of the {tool}", lambda: open(f"/proc/{pid}/mem", "r+b"))
    for fd in range(64):
        attempt(f"open what the {tool} has", lambda: open(f"/proc/{pid}/fd/{fd}", "wb"))
    print("met", tool)
for fd in os.listdir("/proc/self/fd"):
    if "report" in os.path.realpath(f"/proc/self/fd/{fd}"):
        print("COULD reach a report")
above = os.path.dirname(os.environ["TMPDIR"])
attempt("write beside its own scratch", lambda: open(above + "/x", "w"))
import tempfile
tempfile.TemporaryFile().close()  # as compilers make them
def run(x):
    print("called with", x.tolist())
    return x + 1
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Never warm: the deep mode uses no forkserver."""
    with Sandbox.open(mode=DeviceMode.CPU_INTERPRET, device="cpu") as opened:
        if opened.plan.bubblewrap is None:
            pytest.skip("bubblewrap does not work here, and the deep mode has no other sandbox")
        yield opened


def stand_in(folder: Path, xml: str = "", text: str = "") -> Sanitizer:
    """A tool that reports what it is told to."""
    folder.chmod(0o755)  # the sandbox's own uid reads it
    program = folder / NAME
    program.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
    program.chmod(0o755)
    for name, said in (("says.xml", xml), ("says.log", text)):
        if said:
            (folder / name).write_text(said)
    return Sanitizer(program, "2000.1.0.0")


def kernel(sandbox: Sandbox, source: bytes) -> Kernel:
    return Kernel(sandbox, source, HOW, (Call("usual", [torch.ones(2)]),))


def test_the_tools_report_is_read_and_the_kernel_reaches_neither_it_nor_the_tool(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    tool = stand_in(tmp_path, report(access("rows", TRITON)), summary(1))
    run = Run(kernel(sandbox, SPY), tool, Check.MEMCHECK)
    result = run.result()
    assert (result.status, result.count, result.cases) == (DeepStatus.FINDINGS, 1, ("usual",))
    assert result.version == "2000.1.0.0"
    assert "called with [1.0, 1.0]" in run.printed
    assert "met stand-in" in run.printed
    assert "COULD" not in run.printed


def test_who_calls_it_off_waits_for_no_kernel_and_leaves_no_process(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine, "_CORES_EACH", 64)  # one after the other
    started = time.monotonic()

    def check() -> None:
        if time.monotonic() - started > 1:
            raise Cancelled

    endless = kernel(sandbox, b"while True: pass")
    with pytest.raises(Cancelled):
        list(examine.look(endless, stand_in(tmp_path), check))
    assert time.monotonic() - started < 10
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _names(path, tmp_path)]


def _names(cmdline: Path, folder: Path) -> bool:
    with suppress(OSError):  # it has just ended
        return str(folder).encode() in cmdline.read_bytes()
    return False


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (None, "was not started"),
        (Ended(None, "", (b"", b"")), "did not end in time"),
        (Ended(-9, "memory", (b"", b"")), "more memory than allowed"),
        (Ended(0, "", (None, b"")), "too large"),
        (Ended(0, "", (report().encode(), b"")), "no summary"),
    ],
)
def test_without_a_whole_report_nothing_is_clean(ended: Ended | None, reason: str) -> None:
    result = conclude(Check.MEMCHECK, RETURNED, ended, printed="its last words\n")
    assert result.status is DeepStatus.UNDECIDED
    assert reason in result.reason
    assert "its last words" in result.reason


@pytest.mark.parametrize(
    "replies",
    [
        {"usual": Reply(ReplyKind.RAISED, "ValueError: not this size")},
        {**RETURNED, "ragged": Reply(ReplyKind.CRASHED, "it closed its channel")},
    ],
)
def test_a_kernel_that_did_not_do_its_work_is_not_clean(replies: dict[str, Reply]) -> None:
    ended = Ended(0, "", (report().encode(), summary(0).encode()))
    result = conclude(Check.INITCHECK, replies, ended)
    assert result.status is DeepStatus.UNDECIDED
    assert result.reason
