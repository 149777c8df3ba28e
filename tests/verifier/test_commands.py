"""`python -m verifier` as its users meet it: exit codes, documents, replays."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.verifier.conftest import Command
from verifier.__main__ import main
from verifier.commands.gates import gate_lines
from verifier.commands.report import report_lines
from verifier.pipeline import GATES
from verifier.records import (
    CaseNote,
    DeepFinding,
    DeepResult,
    DeepStatus,
    GateId,
    GateStatus,
    Outcome,
    Verdict,
    from_json,
)

ROOT = Path(__file__).resolve().parents[2]
TASK = ROOT / "tests/gates/tasks/row_softmax"

GOOD = """
import torch, triton, triton.language as tl

@triton.jit
def rows(x, o, stride, n, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + c, mask=c < n, other=-float("inf")).to(tl.float32)
    m = tl.where(tl.max((v != v).to(tl.int32), 0) > 0, float("nan"), tl.max(v, 0))
    e = tl.exp(v - m)
    tl.store(o + row * n + c, (e / tl.sum(e, 0)).to(o.dtype.element_ty), mask=c < n)

def run(x):
    x = x.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        rows[(x.shape[0],)](x, o, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o
"""
NO_MAX = GOOD.replace("e = tl.exp(v - m)", "e = tl.exp(v)")


@dataclass(frozen=True)
class Done:
    """What a shell would see of a command."""

    returncode: int
    stdout: str
    stderr: str


def process(*words: str | Path, stdin: str = "") -> Done:
    """`python -m verifier` as a process of its own."""
    line = [sys.executable, "-m", "verifier", *map(str, words)]
    done = subprocess.run(
        line, capture_output=True, text=True, input=stdin, cwd=ROOT, timeout=300, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


Verifier = Callable[..., Done]


@pytest.fixture
def verifier(command: Command, capsys: pytest.CaptureFixture[str]) -> Verifier:
    """The same words on the warm session of this process, where the process is not the point."""

    def run(*words: str | Path) -> Done:
        capsys.readouterr()
        code = command(*words)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


def write(folder: Path, source: str | bytes) -> Path:
    path = folder / "kernel.py"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return path


@pytest.fixture(scope="module")
def rejected(tmp_path_factory: pytest.TempPathFactory, command: Command) -> tuple[Path, Verdict]:
    """A verdict file of a kernel that does not subtract the maximum."""
    folder = tmp_path_factory.mktemp("rejected")
    out = folder / "verdict.json"
    words = ("verify", "--task", TASK, "--kernel", write(folder, NO_MAX), "--seed", 11)
    assert command(*words, "--json", out, "--device", "cpu") == 1
    return out, from_json(Verdict, json.loads(out.read_text()))


def test_an_honest_kernel_exits_zero_and_prints_twelve_rows(tmp_path: Path) -> None:
    done = process("verify", "--task", TASK, "--kernel", write(tmp_path, GOOD), "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(gate.value in done.stdout for gate in GateId)
    assert "ACCEPTED" in done.stdout


def test_a_gate_that_was_not_asked_for_is_not_called_inapplicable(
    tmp_path: Path, verifier: Verifier
) -> None:
    words = ("--kernel", write(tmp_path, GOOD), "--gates", "G1", "--device", "cpu")
    done = verifier("verify", "--task", TASK, "--no-timing", *words)
    assert "ACCEPTED: 1 passed, 0 failed, 0 not applicable, 11 not asked for." in done.stdout


def test_the_deep_mode_without_a_gpu_says_so_once_and_changes_nothing_else(
    tmp_path: Path, verifier: Verifier
) -> None:
    words = ("--kernel", write(tmp_path, GOOD), "--gates", "G1", "--device", "cpu", "--no-timing")
    done = verifier("verify", "--task", TASK, "--events", "--deep", *words)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    [deep] = [event["payload"] for event in events if event["event"] == "deep"]
    assert (deep["tool"], deep["status"]) == ("compute-sanitizer", "not available")
    assert "no GPU" in deep["reason"]
    verdict = from_json(Verdict, events[-1]["payload"])
    assert [result.reason for result in verdict.deep] == [deep["reason"]]
    assert done.returncode == 0


def test_what_the_deep_mode_saw_stands_in_the_table(rejected: tuple[Path, Verdict]) -> None:
    found = DeepFinding("Invalid read", "rows", thread=(1, 0, 0), source="kernel.py:7", count=3)
    deep = (
        DeepResult("memcheck", DeepStatus.FINDINGS, count=3, findings=(found,), cases=("usual",)),
    )
    lines = list(report_lines(replace(rejected[1], deep=deep)))
    assert "   memcheck   findings               3 reported; 1 call (usual)" in lines
    assert "      rows: Invalid read (kernel.py:7, thread (1,0,0)), 3x" in lines


def test_what_passed_gates_did_not_judge_is_told_once_for_each_reason(
    rejected: tuple[Path, Verdict],
) -> None:
    _, verdict = rejected
    note = CaseNote(GateStatus.NOT_APPLICABLE, "no bf16 here", 4)
    noted = {GateId.AGREEMENT, GateId.SHAPES, GateId.RANGE}
    gates = tuple(
        replace(gate, notes=(note,) if gate.gate in noted else ()) for gate in verdict.gates
    )
    passed = [g.gate.value for g in gates if g.notes and g.status is GateStatus.PASS]
    told = [line for line in report_lines(replace(verdict, gates=gates)) if "bf16" in line]
    cases = f"{4 * len(passed)} cases of {', '.join(passed)}"
    assert GateId.RANGE.value not in passed
    assert told == [f"   not judged here: {cases}: no bf16 here"]


REFUSED = (
    "Triton's compiler refuses rows: CompilationError: at 2:4:\ndef rows(x):\n    y = LOG2E\n"
    "        ^\nNameError('LOG2E is no constexpr')"
)


def failed_alike(verdict: Verdict, reason: str) -> list[str]:
    """The lines of a verdict in which all gates fail for one reason."""
    example = verdict.gates[9].counterexample
    assert example is not None
    example = replace(example, detail=reason)
    failed = replace(verdict.gates[9], reason=reason, counterexample=example)
    gates = tuple(replace(failed, gate=gate.gate) for gate in verdict.gates)
    return list(report_lines(replace(verdict, gates=gates)))


def test_the_cause_of_a_compile_error_stands_in_its_line_and_its_listing_below(
    rejected: tuple[Path, Verdict],
) -> None:
    lines = failed_alike(rejected[1], REFUSED)
    (row,) = [line for line in lines if " G1 " in line and "✕" in line]
    assert row.endswith("NameError('LOG2E is no constexpr')")
    assert "         |     y = LOG2E" in lines


def test_a_fault_that_meets_all_gates_is_told_once(rejected: tuple[Path, Verdict]) -> None:
    text = "\n".join(failed_alike(rejected[1], REFUSED))
    assert text.count("LOG2E is no constexpr") == 2  # the line, and the listing below it
    assert text.count("same as G1") == 11


def test_values_have_the_digits_of_their_dtype(rejected: tuple[Path, Verdict]) -> None:
    lines = "\n".join(failed_alike(rejected[1], "off"))
    gate = rejected[1].gates[9].counterexample
    assert gate is not None
    got = next(one for one in gate.slices if one.name == "got")
    assert got.dtype in ("float32", "float16")
    values = re.findall(r"got (\S+)", lines)
    assert values
    assert all(len(re.sub(r"e.*|\D", "", one).strip("0")) <= 9 for one in values)


def test_an_illusion_is_named_as_one(rejected: tuple[Path, Verdict]) -> None:
    _, verdict = rejected
    assert verdict.outcome is Outcome.REJECTED
    assert verdict.illusion
    assert verdict.gates[9].status is GateStatus.FAIL


def test_a_failure_is_minimised(rejected: tuple[Path, Verdict]) -> None:
    _, verdict = rejected
    example = verdict.gates[9].counterexample
    assert example is not None
    assert min(example.case.dims.values()) == 1
    assert example.minimised_from


def test_a_failure_replays_byte_for_byte(
    rejected: tuple[Path, Verdict], verifier: Verifier
) -> None:
    path, verdict = rejected
    done = verifier("replay", path, "--json", "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    failed = [r.gate.value for r in verdict.gates if r.status is GateStatus.FAIL]
    assert [row["gate"] for row in rows] == failed
    assert all(row["failed_again"] and row["inputs_match"] and row["outputs_match"] for row in rows)


def test_replaying_one_gate_by_number_prints_its_line(
    rejected: tuple[Path, Verdict], verifier: Verifier
) -> None:
    done = verifier("replay", rejected[0], "--gate", "10", "--device", "cpu")
    assert done.returncode == 0
    assert "G10" in done.stdout
    assert "output digests match" in done.stdout


def test_a_verdict_with_another_output_digest_does_not_replay(
    rejected: tuple[Path, Verdict],
    tmp_path: Path,
    verifier: Verifier,
) -> None:
    document = json.loads(rejected[0].read_text())
    document["gates"][9]["counterexample"]["calls"][0]["outputs"] = "0" * 64
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document))
    done = verifier("replay", forged, "--gate", "G10", "--device", "cpu")
    assert done.returncode == 1
    assert "output digests DIFFER" in done.stdout


@pytest.mark.parametrize(
    "changes", [{"fill": "nosuch"}, {"dims": {"R": 10**15, "N": 10**15}}, {"dims": {}}]
)
def test_a_verdict_whose_case_nobody_can_make_is_refused(
    rejected: tuple[Path, Verdict],
    tmp_path: Path,
    command: Command,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
) -> None:
    document = json.loads(rejected[0].read_text())
    document["gates"][9]["counterexample"]["case"] |= changes
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    assert command("replay", changed, "--gate", "G10", "--device", "cpu") == 2
    assert "the case of G10 is none of ours" in capsys.readouterr().err


def test_what_breaks_in_us_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(args: object) -> int:
        raise SystemExit(0)

    monkeypatch.setattr("verifier.commands.gates.run", breaks)
    assert main(["gates"]) == 3
    assert "verifier: broke: 0" in capsys.readouterr().err


def test_a_verdict_whose_source_was_changed_is_refused(
    rejected: tuple[Path, Verdict],
    tmp_path: Path,
    verifier: Verifier,
) -> None:
    document = json.loads(rejected[0].read_text())
    document["kernel"]["source"] += "# the same behaviour, other bytes\n"
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    done = verifier("replay", changed, "--device", "cpu")
    assert done.returncode == 2
    assert "sha256" in done.stderr


def test_a_verdict_never_brings_its_own_reference(
    rejected: tuple[Path, Verdict],
    tmp_path: Path,
    verifier: Verifier,
) -> None:
    document = json.loads(rejected[0].read_text())
    document["task"]["digest"] = "0" * 64
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps(document))
    done = verifier("replay", strange, "--device", "cpu")
    assert done.returncode == 2
    assert "--task" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verify"], "--task"),
        (["verify", "--task", "nowhere", "--kernel", "nothing.py"], "nothing.py"),
        (["frobnicate"], "invalid choice"),
        (["replay", "nothing.json"], "nothing.json"),
    ],
)
def test_bad_usage_exits_two_and_says_what_is_wrong(
    words: list[str], message: str, verifier: Verifier
) -> None:
    done = verifier(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--gates", "G13"], "G13"),
        (["--seed", "-1"], "seed"),
        (["--entry", "not a name"], "entry"),
    ],
)
def test_bad_options_are_refused(
    extra: list[str], message: str, tmp_path: Path, verifier: Verifier
) -> None:
    done = verifier("verify", "--task", TASK, "--kernel", write(tmp_path, GOOD), *extra)
    assert done.returncode in {2, 3}
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "COMMAND"),
        (["verify", "--task", TASK, "--kernel", __file__, "--device", "cuda:99"], "cuda:99"),
    ],
)
def test_a_process_with_nothing_to_do_says_so_without_a_traceback(
    words: list[str | Path], message: str
) -> None:
    done = process(*words)
    assert done.returncode in {2, 3}
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_task_exits_two_with_the_field(tmp_path: Path, verifier: Verifier) -> None:
    (tmp_path / "task.json").write_text('{"slug": 3}')
    (tmp_path / "reference.py").write_text("def reference(x): return x")
    done = verifier("verify", "--task", tmp_path, "--kernel", write(tmp_path, GOOD))
    assert done.returncode == 2
    assert "task.json.slug" in done.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def run(x:\n", "SyntaxError"),
        ("def walk(x): return x\n", "run"),
        ("run = 3\n", "callable"),
        (b"\xff\xfe\x00 nonsense", ""),
        (b"def run(x):\n    return x\n\0", ""),
        (b"", "run"),
        (b"#" * (10 << 20), "limit"),
        ("def run(x): raise ValueError('no')\n", "ValueError"),
        ("def run(): return 1\n", "TypeError"),
    ],
    ids=["syntax", "no-entry", "not-callable", "bytes", "nul", "empty", "10MB", "raises", "arity"],
)
def test_a_broken_kernel_gets_a_verdict_that_says_why(
    source: str | bytes,
    message: str,
    tmp_path: Path,
    verifier: Verifier,
) -> None:
    out = tmp_path / "verdict.json"
    kernel = write(tmp_path, source)
    done = verifier("verify", "--task", TASK, "--kernel", kernel, "--json", out, "--device", "cpu")
    assert done.returncode == 1, done.stdout + done.stderr
    verdict = from_json(Verdict, json.loads(out.read_text()))
    assert verdict.outcome is Outcome.REJECTED
    assert verdict.gates[0].status is GateStatus.FAIL
    assert message in verdict.gates[0].reason


def test_a_kernel_that_raises_whatever_it_is_given_is_not_tried_further(
    tmp_path: Path, command: Command
) -> None:
    kernel, out = write(tmp_path, "def run(x): raise ValueError('no')\n"), tmp_path / "v.json"
    words = ("--kernel", kernel, "--device", "cpu", "--json", out)
    assert command("verify", "--task", TASK, *words) == 1
    verdict = from_json(Verdict, json.loads(out.read_text()))
    assert {(r.status, r.reason) for r in verdict.gates[1:]} == {
        (GateStatus.NOT_APPLICABLE, "not tried: the kernel raised ValueError: no")
    }


def test_only_the_gates_asked_for_are_judged(tmp_path: Path, verifier: Verifier) -> None:
    out = tmp_path / "verdict.json"
    kernel = write(tmp_path, GOOD)
    done = verifier("verify", "--task", TASK, "--kernel", kernel, "--gates", "G1,8", "--json", out)
    assert done.returncode == 0, done.stderr
    verdict = from_json(Verdict, json.loads(out.read_text()))
    judged = [r.gate.value for r in verdict.gates if r.reason != "not asked for"]
    assert judged == ["G1", "G8"]


def test_events_are_json_lines_that_end_with_the_verdict(
    tmp_path: Path, verifier: Verifier
) -> None:
    kernel = write(tmp_path, GOOD)
    done = verifier("verify", "--task", TASK, "--kernel", kernel, "--events", "--gates", "G1")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[0] == "started"
    assert kinds[-1] == "verdict"
    assert kinds.count("gate") == 12
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)


def test_gates_lists_the_twelve() -> None:
    rows = json.loads(process("gates", "--json").stdout)
    assert [row["id"] for row in rows] == [gate.value for gate in GateId]
    assert all(row["property"] and row["name"] for row in rows)


def test_gates_explains_its_words_and_how_each_gate_judges() -> None:
    lines = list(gate_lines([gate.info for gate in GATES], columns=80))
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "golden ones, which are the task's reference computed in fp64" in text
    for gate in GATES:
        how = "exact" if gate.info.tolerance_free else "within a tolerance"
        assert f"{gate.info.id} {gate.info.name} ({how}) {gate.info.property}" in text


def serve(*lines: Any) -> list[dict[str, Any]]:
    """The answers to lines; what is text is sent as it is, anything else as JSON."""
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    done = process("serve", "--device", "cpu", stdin=text)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


BAD_JOBS: list[dict[str, Any]] = [
    {"task": "nowhere"},
    {"kernel": None},
    {"kernel": "a\0b"},
    {"kernel": "a\ud800"},
    {"seed": "x"},
    {"seed": 1.5},
    {"gates": [1]},
    {"gates": "G1"},
]
BAD_LINES = ["junk", "[1]", "[" * 200_000, "\ufffd", ""]


def test_serve_judges_jobs_in_order_survives_bad_ones_and_drops_a_cancelled_one(
    tmp_path: Path,
) -> None:
    kernel = str(write(tmp_path, GOOD))
    job = {"task": str(TASK), "kernel": kernel, "gates": ["G1"], "measure": False, "seed": 1}
    bad = [{"id": f"bad {n}", **job, **fields} for n, fields in enumerate(BAD_JOBS)]
    dropped = {"cancel": "b"}, {"id": "b", **job}
    answers = serve({"id": "a", **job}, *bad, *BAD_LINES, *dropped, {"id": "c", **job})
    assert [answer["event"] for answer in answers[:2]] == ["health", "ready"]
    last = {answer["id"]: answer["event"] for answer in answers if "id" in answer}
    told = {"a": "verdict", "b": "cancelled", "c": "verdict"}
    assert last == told | {one["id"]: "error" for one in bad}
    assert len([one for one in answers if "id" not in one]) == 2 + len(BAD_LINES)


def test_the_first_failure_can_end_it_all(tmp_path: Path, command: Command) -> None:
    kernel, out = (
        write(tmp_path, "import torch\ndef run(x):\n    return x * 2\n"),
        tmp_path / "v.json",
    )
    words = ("--kernel", kernel, "--device", "cpu", "--fail-fast", "--json", out)
    assert command("verify", "--task", TASK, *words) == 1
    verdict = from_json(Verdict, json.loads(out.read_text()))
    assert (verdict.gates[0].status, verdict.gates[0].failed) == (GateStatus.FAIL, 1)
    assert {(r.status, r.reason) for r in verdict.gates[1:11]} == {
        (GateStatus.NOT_APPLICABLE, "not tried: G1 failed")
    }


def test_what_another_gates_calls_showed_is_a_failure_that_replays(
    tmp_path: Path, command: Command
) -> None:
    kernel = ROOT / "tests/adversarial/input_mutation/hostile_late.py"
    task, out = ROOT / "tests/adversarial/tasks/energy", tmp_path / "v.json"
    words = ("--task", task, "--gates", "G1,G3,G8", "--device", "cpu", "--seed", 1, "--json", out)
    assert command("verify", "--kernel", kernel, *words) == 1
    result = from_json(Verdict, json.loads(out.read_text())).gates[7]
    assert result.status is GateStatus.FAIL
    assert "in a call of G3" in result.reason
    assert command("replay", out, "--task", task, "--device", "cpu") == 0
