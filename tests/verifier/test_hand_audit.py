"""Defence 4: a sample that people can read without the verifier, and their words counted."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.verifier.conftest import Command
from tests.verifier.studies_samples import CPU
from verifier.defences.audit import (
    TABLE,
    Found,
    export,
    findings,
    join,
    read_classes,
    read_judgements,
    read_sample,
    read_verdicts,
    sample,
)
from verifier.records import (
    CaseRecord,
    Counterexample,
    GateId,
    GateResult,
    GateStatus,
    KernelRef,
    Language,
    TaskRef,
    Verdict,
    to_json,
)
from verifier.session import UsageError
from verifier.studies import HandAudit, Judgement, load

SOURCE = "def run(x):\n    return x  # the kernel itself\n"


def gate_result(gate: GateId, status: GateStatus) -> GateResult:
    if status is GateStatus.PASS:
        return GateResult(gate, status, "3 cases", passed=3)
    example = None
    if status is GateStatus.FAIL:
        case = CaseRecord("M=3", {"M": 3}, {"T": "float32"}, "normal", 1)
        example = Counterexample(case, "off by a mile", ())
    failed = int(status is GateStatus.FAIL)
    return GateResult(gate, status, "said", "a reason", failed=failed, counterexample=example)


def verdict(number: int, *failing: GateId, task: str = "softmax") -> Verdict:
    gates = tuple(
        gate_result(gate, GateStatus.FAIL if gate in failing else GateStatus.PASS)
        for gate in GateId
    )
    kernel = KernelRef(f"{number:064x}"[::-1], "run", Language.TRITON, SOURCE)
    return Verdict(
        TaskRef(task, "d" * 64), kernel, 7, gates, None, CPU, "2026-11-30T16:00:00+00:00", 5.0
    )


def found_in(*verdicts: Verdict) -> list[Found]:
    return findings(verdicts, {"softmax": "normalisation"})


def test_a_stratum_is_gate_by_op_class_by_verdict() -> None:
    _, population = sample(found_in(verdict(1, GateId.RANGE), verdict(2)), seed=0)
    assert population["G10 · normalisation · FAIL"] == 1
    assert population["G10 · normalisation · PASS"] == 1
    assert population["G1 · normalisation · PASS"] == 2


def test_each_stratum_gives_as_many_as_asked_for_where_it_has_them() -> None:
    many = found_in(*(verdict(number, GateId.RANGE) for number in range(15)))
    drawn, _ = sample(many, seed=0, per_stratum=10)
    counts = {one.item.stratum for one in drawn}
    assert len(counts) == 12
    assert len(drawn) == 120


def test_the_same_seed_draws_the_same_sample_whatever_the_order() -> None:
    many = found_in(*(verdict(number) for number in range(30)))
    first = [one.id for one in sample(many, seed=4, per_stratum=5)[0]]
    again = [one.id for one in sample(list(reversed(many)), seed=4, per_stratum=5)[0]]
    other = [one.id for one in sample(many, seed=5, per_stratum=5)[0]]
    assert first == again
    assert first != other


def test_a_finding_that_comes_twice_is_counted_once() -> None:
    _, population = sample(found_in(verdict(1), verdict(1)), seed=0)
    assert set(population.values()) == {1}


def test_what_was_not_judged_is_not_read() -> None:
    absent = verdict(1)
    gates = tuple(
        GateResult(gate, GateStatus.NOT_APPLICABLE, "n/a", "the op declares no sum")
        if gate is GateId.ACCUMULATION
        else gate_result(gate, GateStatus.PASS)
        for gate in GateId
    )
    absent = Verdict(
        absent.task, absent.kernel, 7, gates, None, CPU, absent.started_at, absent.duration_ms
    )
    assert GateId.ACCUMULATION not in {one.result.gate for one in found_in(absent)}


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    drawn, population = sample(found_in(verdict(1, GateId.RANGE), verdict(2)), seed=0)
    export(drawn, population, tmp_path / "sample")
    return tmp_path / "sample"


def test_a_reader_finds_kernel_verdict_and_counterexample_in_one_text(exported: Path) -> None:
    (page,) = [p for p in exported.glob("*-g10.txt") if "FAIL" in p.read_text()]
    text = page.read_text()
    assert "# the kernel itself" in text
    assert "off by a mile" in text
    assert "Write right, wrong or unsure" in text


def test_a_sample_is_never_written_over(exported: Path) -> None:
    with pytest.raises(UsageError, match="judgements in it would be lost"):
        export([], {}, exported)


def judged(folder: Path, name: str, words: dict[str, str]) -> Path:
    """A reader's copy of the table, with their word by id."""
    with (folder / TABLE).open(newline="") as file:
        rows = list(csv.DictReader(file))
    target = folder / f"{name}.csv"
    with target.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, "judgement": words.get(row["id"], "")} for row in rows)
    return target


def test_empty_judgements_are_left_out_and_case_does_not_matter(exported: Path) -> None:
    items, _ = read_sample(exported)
    path = judged(exported, "ann", {items[0].id: " Wrong "})
    assert read_judgements(path) == {items[0].id: Judgement.WRONG}


def test_an_unknown_word_is_refused_with_its_line(exported: Path) -> None:
    items, _ = read_sample(exported)
    path = judged(exported, "ann", {items[2].id: "maybe"})
    with pytest.raises(UsageError, match=r"line 4: 'maybe'"):
        read_judgements(path)


def test_a_judgement_of_something_else_is_refused(exported: Path) -> None:
    items, _ = read_sample(exported)
    with pytest.raises(UsageError, match="does not hold"):
        join(items, {"ann": {"elsewhere": Judgement.RIGHT}})


def test_verdicts_are_read_one_a_file_or_one_a_line(tmp_path: Path) -> None:
    documents: list[Any] = [to_json(verdict(1)), to_json(verdict(2))]
    (tmp_path / "one.json").write_text(json.dumps(documents[0]))
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n")
    assert len(list(read_verdicts([tmp_path / "one.json", tmp_path / "many.jsonl"]))) == 3


def test_a_file_without_verdicts_is_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(UsageError, match="no verdicts"):
        list(read_verdicts([tmp_path / "no.json"]))


def test_a_tasks_op_class_is_its_category(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/task.json").write_text('{"slug": "rope", "category": "elementwise"}')
    assert read_classes([tmp_path]) == {"rope": "elementwise"}


def test_from_verdicts_to_an_error_rate_by_commands_alone(
    tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts, folder, out = tmp_path / "v.jsonl", tmp_path / "sample", tmp_path / "audit.json"
    lines = [json.dumps(to_json(verdict(number, GateId.RANGE))) for number in (1, 2)]
    verdicts.write_text("\n".join(lines))
    assert command("defend", "audit", "export", verdicts, "--out", folder) == 0
    items, _ = read_sample(folder)
    fails = [item.id for item in items if item.verdict is GateStatus.FAIL]
    words = {item.id: "right" for item in items} | {fails[0]: "wrong"}
    ann = judged(folder, "ann", words)
    bob = judged(folder, "bob", words | {fails[1]: "unsure"})
    readers = ("--reader", f"ann={ann}", "--reader", f"bob={bob}")
    assert command("defend", "audit", "import", folder, *readers, "--json", out) == 0
    study = load(HandAudit, out)
    assert (study.errors.hits, study.errors.n) == (1, len(items) - 1)
    printed = capsys.readouterr().out
    assert "wrong verdicts: 1/23" in printed
    assert "of FAIL (false accusations): 1/1" in printed
