from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from kernelhub import cli
from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Run
from tests import factories as make
from tests.cli.conftest import Command, StubNode
from verifier import records

pytestmark = pytest.mark.django_db(transaction=True)
TASK = "fuzzoracle/softmax"


def finish(**verdict: Any) -> Any:
    return lambda run: make.make_finished(run, **verdict)


def test_a_submission_names_the_run_and_its_page(hub: str, kernel: str, command: Command) -> None:
    result = command("submit", kernel, "--task", TASK, "--seed", "7", "--label", "v1")
    run = Run.objects.get()
    assert (result.code, run.seed, run.kernel.label) == (0, 7, "v1")
    assert result.out == f"run {run.pk} is queued: {hub}/runs/{run.pk}/\n"


def test_a_kernel_is_called_by_its_file_unless_a_label_says_otherwise(
    hub: str, kernel: str, command: Command
) -> None:
    command("submit", kernel, "--task", TASK)
    assert Run.objects.get().kernel.label == "kernel"


def test_a_file_name_that_the_hub_would_refuse_is_cut_to_what_it_takes(
    hub: str, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / f"a\n{'b' * 200}.py"
    path.write_text(make.SOURCE)
    assert command("submit", str(path), "--task", TASK).code == 0
    assert Run.objects.get().kernel.label == "a" + "b" * 119


def test_an_accepted_kernel_exits_0_with_a_table_of_twelve_gates(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    node.will(finish())
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert result.code == 0
    rows = [line for line in result.out.splitlines() if line.startswith("  ✓ G")]
    assert [row.split()[1] for row in rows] == [gate.value for gate in records.GateId]
    assert result.out.startswith("accepted: ")


def test_a_rejected_kernel_exits_1_with_its_reason_and_how_to_replay_it(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    node.will(finish(failed=("G4",), loose=True))
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert result.code == 1
    assert "✗ G4  shapes       differs at index 0 (no tolerance involved)" in result.out
    assert "the loose test accepts this kernel" in result.out
    run = Run.objects.get()
    assert f"\n.venv/bin/kernelhub verdict {run.pk} --json > verdict.json\n" in result.out
    assert "\n.venv/bin/python -m verifier replay verdict.json --gate G4\n" in result.out


def test_what_a_passed_gate_did_not_judge_is_told_once_for_each_reason(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    def judge(run: Run) -> None:
        lease = make.make_lease(run)
        note = records.CaseNote(records.GateStatus.NOT_APPLICABLE, "no bf16 here", 4)
        verdict = make.verdict_record(lease.run)
        noted = [replace(gate, notes=(note,)) for gate in verdict.gates[:2]]
        verdict = replace(verdict, gates=(*noted, *verdict.gates[2:]))
        services.run_finish(run_id=run.pk, attempt=lease.attempt, verdict=verdict)

    node.will(judge)
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert result.out.count("no bf16 here") == 1
    assert "\nnot judged here: 8 cases of G1, G2: no bf16 here\n" in result.out


def test_json_is_the_verifiers_document_and_nothing_else_on_standard_output(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    node.will(finish())
    result = command("submit", kernel, "--task", TASK, "--wait", "--json")
    verdict = records.from_json(records.Verdict, json.loads(result.out))
    assert verdict.outcome is records.Outcome.ACCEPTED
    assert "judges it" in result.err


def test_an_errored_run_exits_3_and_does_not_blame_the_kernel(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    def break_down(run: Run) -> None:
        lease = make.make_lease(run)
        services.run_error(
            run_id=run.pk, attempt=lease.attempt, kind=ErrorKind.TASK, message="no reference"
        )

    node.will(break_down)
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert result.code == 3
    assert "says nothing about the kernel" in result.err
    assert "no reference" in result.err


def test_a_cancelled_run_exits_4(hub: str, kernel: str, command: Command, node: StubNode) -> None:
    node.will(lambda run: services.run_cancel(run=run))
    assert command("submit", kernel, "--task", TASK, "--wait").code == 4


def judge_live(*gates: records.GateResult, log: str = "") -> Any:
    """What a node does: these gates reported as they come, then a verdict that holds them."""

    def judge(run: Run) -> None:
        lease = make.make_lease(run, make.make_node("bench-1"))
        happened: list[events.Log | events.Gate] = [events.Log("kernel", log)]
        happened += [events.Gate(gate) for gate in gates]
        services.run_event_append(run_id=run.pk, attempt=lease.attempt, first=0, happened=happened)
        verdict = make.verdict_record(lease.run)
        verdict = replace(verdict, gates=(*gates, *verdict.gates[len(gates) :]))
        services.run_finish(run_id=run.pk, attempt=lease.attempt, verdict=verdict)

    return judge


AGREES = make.gate_record(records.GateId.AGREEMENT)


def test_progress_is_told_while_waiting_and_what_kernels_print_is_not(
    hub: str, kernel: str, command: Command, node: StubNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "somebody_watches", lambda: True)
    node.will(judge_live(AGREES, log="\x1b[2Jboo"))
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert "bench-1 judges it" in result.err
    assert "✓ G1" in result.err
    assert "boo" not in result.out + result.err


def test_a_gate_told_while_waiting_is_not_told_again_at_the_same_place(
    hub: str, kernel: str, command: Command, node: StubNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "same_place", lambda: True)
    node.will(judge_live(AGREES))
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert (result.err.count("✓ G"), result.out.count("  ✓ G")) == (1, 11)


def test_a_log_beside_the_result_does_not_hold_the_gates_twice(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    node.will(judge_live(AGREES))
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert (result.err.count("✓ G"), result.out.count("  ✓ G")) == (0, 12)


def test_one_file_for_result_and_progress_is_one_place(tmp_path: Path) -> None:
    code = "from kernelhub.cli import same_place; raise SystemExit(not same_place())"
    with (tmp_path / "a").open("w") as one, (tmp_path / "b").open("w") as other:
        for beside, exit_code in ((one, 0), (other, 1)):
            done = subprocess.run([sys.executable, "-c", code], stdout=one, stderr=beside)
            assert done.returncode == exit_code


def broken(gate: records.GateId) -> records.GateResult:
    """A gate that a kernel fails which cannot even be read: no value came of it."""
    example = replace(make.counterexample_record(), output="", index=(), expected="", got="")
    words = "SyntaxError: '(' was never closed (kernel.py, line 3)"
    return replace(make.gate_record(gate, fail=True), reason=words, counterexample=example)


def test_a_fault_that_meets_all_gates_is_told_once_and_without_tolerances(
    hub: str, kernel: str, command: Command, node: StubNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "same_place", lambda: True)
    node.will(judge_live(*map(broken, records.GateId)))
    result = command("submit", kernel, "--task", TASK, "--wait")
    shown = result.out + result.err
    assert shown.count("SyntaxError") == 1
    assert shown.count("same as G1") == 11
    assert "tolerance" not in shown


def test_a_compile_error_is_told_with_its_cause(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    gate = make.gate_record(records.GateId.AGREEMENT, fail=True)
    head = "Triton's compiler refuses f: CompilationError: at 2:4:"
    reason = f"{head}\n  y = X\n      ^\nNameError(X)"
    node.will(judge_live(replace(gate, reason=reason)))
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert f"{head} NameError(X) (no tolerance" in result.out


def test_a_label_that_is_not_kept_is_said(hub: str, kernel: str, command: Command) -> None:
    command("submit", kernel, "--task", TASK, "--label", "first")
    result = command("submit", kernel, "--task", TASK, "--label", "second")
    assert "as 'first'; the label 'second' was not kept" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "fuzzoracle/sofmax"], "Did you mean fuzzoracle/softmax?"),
        (["--task", TASK, "--entry", "1x"], "#/entry"),
        (["--task", TASK, "--seed", "-1"], "#/seed"),
        (["--task", TASK, "--queue", "sm99"], "sm99"),
        (["--task", TASK, "--seed", "x"], "invalid int value"),
        ([], "--task"),
    ],
)
def test_a_wrong_request_exits_2_and_says_what_is_wrong(
    hub: str, kernel: str, command: Command, arguments: list[str], words: str
) -> None:
    result = command("submit", kernel, *arguments)
    assert result.code == 2
    assert words in result.err
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe", "byte 0 is not UTF-8"), (b"x = '\0'", "NUL"), (b"", "blank")],
)
def test_a_file_that_is_no_source_exits_2(
    hub: str, tmp_path: Path, command: Command, content: bytes, words: str
) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    result = command("submit", str(path), "--task", TASK)
    assert (result.code, words in result.err) == (2, True), result.err


def test_a_missing_file_exits_2(hub: str, command: Command) -> None:
    result = command("submit", "/nowhere/kernel.py", "--task", TASK)
    assert result.code == 2
    assert "No such file" in result.err


def test_ten_megabytes_exit_2_and_name_the_limit(
    hub: str, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "big.py"
    path.write_text("#" * 10_000_000)
    result = command("submit", str(path), "--task", TASK)
    assert result.code == 2
    assert "1 MiB" in result.err


def test_without_a_token_the_answer_says_to_sign_in(
    hub: str, kernel: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELHUB_TOKEN")
    result = command("submit", kernel, "--task", TASK)
    assert result.code == 2
    assert "Sign in first" in result.err


def test_the_token_that_make_run_left_is_used(
    hub: str, kernel: str, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cli-token").write_text(os.environ["KERNELHUB_TOKEN"] + "\n")
    monkeypatch.delenv("KERNELHUB_TOKEN")
    assert command("submit", kernel, "--task", TASK).code == 0


def test_one_key_is_one_run(hub: str, kernel: str, command: Command) -> None:
    for _ in range(2):
        assert command("submit", kernel, "--task", TASK, "--key", "build-7").code == 0
    assert Run.objects.count() == 1


def test_a_lost_answer_is_asked_for_again_and_makes_no_second_run(
    hub: str, kernel: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_answers(monkeypatch, "POST", times=1)
    assert command("submit", kernel, "--task", TASK).code == 0
    assert Run.objects.count() == 1


def test_a_restart_of_the_hub_does_not_end_the_wait(
    hub: str, kernel: str, command: Command, node: StubNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_answers(monkeypatch, "GET", times=2)
    node.will(finish())
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert result.code == 0
    assert result.err.count("waiting for it") == 1


def lose_answers(monkeypatch: pytest.MonkeyPatch, method: str, times: int) -> None:
    """The hub does its work, but the connection breaks before its answer arrives."""
    original = httpx.Client.request
    left = [times]

    def request(self: httpx.Client, verb: str, *arguments: Any, **options: Any) -> httpx.Response:
        response = original(self, verb, *arguments, **options)
        if verb == method and left[0] > 0:
            left[0] -= 1
            raise httpx.RemoteProtocolError("server disconnected")
        return response

    monkeypatch.setattr(httpx.Client, "request", request)


def test_a_hub_that_stays_away_ends_the_wait_with_3(
    hub: str, kernel: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "WAIT_PATIENCE_S", 0.3)
    lose_answers(monkeypatch, "GET", times=99)
    result = command("submit", kernel, "--task", TASK, "--wait")
    assert result.code == 3
    assert "does not answer" in result.err
    assert Run.objects.get().status == "queued"


def test_an_interrupt_leaves_the_run_going_and_says_how_to_take_it_up(
    hub: str, kernel: str, command: Command, node: StubNode
) -> None:
    def interrupt(run: Run) -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    node.will(interrupt)
    result = command("submit", kernel, "--task", TASK, "--wait")
    run = Run.objects.get()
    assert (result.code, run.status) == (130, "queued")
    assert f"`.venv/bin/kernelhub watch {run.pk}`" in result.err
