"""The page of one run, in each state of its life."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import Client

from kernelhub.core import events, services
from kernelhub.core.choices import ErrorKind, RunStatus
from kernelhub.core.models import Campaign, Run
from tests.web import samples
from tests.web.conftest import person
from verifier import records
from verifier.records import GateId, GateStatus


def html_of(client: Client, run: Run) -> str:
    return client.get(f"/runs/{run.pk}/").content.decode()


def strip_of(html: str) -> list[str]:
    """The state of each cell of the strip."""
    return re.findall(r'class="g (\w+)[^"]*" href="#gate-\d+" data-gate', html)


def fresh_run(label: str = "fresh", **fields: object) -> Run:
    task = samples.suite_load()[-1]
    return services.run_enqueue(task=task, kernel=samples.kernel_of(task, label), **fields)  # type: ignore[arg-type]


def test_an_illusion_is_called_one_with_both_judges_beside(client: Client, illusion: Run) -> None:
    html = html_of(client, illusion)
    assert f"<title>Run {str(illusion.pk)[:8]}: an illusion · kernelhub</title>" in html
    assert "The loose test accepts this kernel; two gates reject it" in html
    assert strip_of(html).count("fail") == 2
    assert "Loose test, 5 trials at M=32, N=96" in html


def test_each_failing_gate_shows_its_counterexample_and_how_to_replay_it(
    client: Client, illusion: Run
) -> None:
    html = html_of(client, illusion)
    for gate in ("G2", "G10"):
        name = f"verdict-{str(illusion.pk)[:8]}.json"
        assert (
            f".venv/bin/kernelhub verdict {illusion.pk} --json --hub http://testserver > {name}\n"
            f".venv/bin/python -m verifier replay {name} --gate {gate}"
        ) in html.replace("&gt;", ">")
    assert "0.731058579" in html
    assert "out[0, 0]" in html
    assert "Minimised from M=64, N=1000." in html


def test_a_compile_error_says_its_cause_first_and_keeps_its_listing(
    client: Client, db: None
) -> None:
    head = "Triton's compiler refuses rows: CompilationError: at 2:4:"
    reason = f"{head}\ndef rows(x):\n    y = LOG2E\n        ^\nNameError(LOG2E)"
    gates = samples.gate_results((GateId.HONEST,))
    example = replace(samples.counterexample(GateId.HONEST, 7), detail=reason)
    run = samples.run_judge(
        fresh_run(),
        samples.node_online(),
        (*gates[:-1], replace(gates[-1], reason=reason, counterexample=example)),
    )
    html = html_of(client, run).replace("&#x27;", "'")
    line = f"{head} NameError(LOG2E)"
    assert f"</b> {line}." in html  # the banner
    assert f"<p>{line}</p>" in html  # the gate's paragraph
    assert f"fail: {line}</span>" in html  # the event
    assert f'<pre class="whole">{reason}</pre>' in html


def test_the_verdict_file_is_the_record_that_the_verifier_reads(
    client: Client, illusion: Run
) -> None:
    response = client.get(f"/runs/{illusion.pk}/verdict.json")
    verdict = records.from_json(records.Verdict, response.json())
    assert verdict.seed == illusion.seed
    assert f"verdict-{str(illusion.pk)[:8]}.json" in response["Content-Disposition"]


def test_a_timed_run_has_a_chart_its_table_and_its_data(client: Client, world: Campaign) -> None:
    run = Run.objects.filter(verdict__measurements__isnull=False).distinct()[0]
    html = html_of(client, run)
    assert 'data-figure="timing-data"' in html
    assert "±" in html.encode().decode("unicode_escape", "ignore")
    lines = client.get(f"/runs/{run.pk}/measurements.csv").content.decode().splitlines()
    assert lines[0].startswith("workload,subject,latency_ms,low_ms,high_ms,n,speedup")
    assert len(lines) == 4
    assert len(client.get(f"/runs/{run.pk}/measurements.json").json()["measurements"]) == 3


def test_a_run_without_times_says_why_and_loads_no_chart(client: Client, illusion: Run) -> None:
    html = html_of(client, illusion)
    assert "Not timed: only what passed its gates is." in html
    assert "data-figure" not in html


@pytest.mark.django_db
def test_a_queued_run_waits_with_twelve_empty_cells(client: Client) -> None:
    html = html_of(client, fresh_run())
    assert strip_of(html) == ["wait"] * 12
    assert "This run waits for a node." in html
    assert 'data-live="yes"' in html


@pytest.mark.django_db
def test_a_running_run_shows_what_is_judged_and_what_is_at_work(client: Client) -> None:
    run = samples.run_lease(fresh_run(), samples.node_online())
    first, second = samples.gate_results((GateId.NONFINITE,))[:2]
    started = events.GateStarted(GateId.DETERMINISM)
    samples.run_post(run, events.Gate(first), events.Gate(second), started)
    html = html_of(client, run)
    assert strip_of(html)[:4] == ["pass", "fail", "run", "wait"]
    assert "Two of twelve gates are judged; one of them rejects." in html
    assert f'data-seq="{Run.objects.get(pk=run.pk).last_seq}"' in html


def test_one_gate_of_twelve_is_judged(client: Client, db: None) -> None:
    run = samples.run_lease(fresh_run(), samples.node_online())
    samples.run_post(run, events.Gate(samples.gate_results()[0]))
    assert "One of twelve gates is judged." in html_of(client, run)


@pytest.mark.django_db
def test_what_a_lost_attempt_found_is_not_shown_as_this_attempts_finding(client: Client) -> None:
    node = samples.node_online()
    run = samples.run_lease(fresh_run(), node)
    samples.run_post(run, events.Gate(samples.gate_results()[0]))
    services.run_error(run_id=run.pk, attempt=1, kind=ErrorKind.INFRASTRUCTURE, message="died")
    assert strip_of(html_of(client, run)) == ["wait"] * 12
    samples.run_lease(run, node)
    html = html_of(client, run)
    assert strip_of(html) == ["wait"] * 12
    assert "attempt 2 of 3" in html


def test_an_errored_run_blames_us_and_not_the_kernel(client: Client, world: Campaign) -> None:
    html = html_of(client, Run.objects.get(status=RunStatus.ERRORED))
    assert "that does not count against it" in html
    assert "died with signal 9" in html


def test_a_cancelled_run_says_so(client: Client, world: Campaign) -> None:
    html = html_of(client, Run.objects.get(status=RunStatus.CANCELLED))
    assert "cancelled before its verdict" in html
    assert 'data-live="no"' in html


@pytest.mark.django_db
def test_a_curator_cancels_any_run(client: Client, curator: User) -> None:
    run = fresh_run()
    client.force_login(curator)
    assert "Cancel run" in html_of(client, run)
    response = client.post(f"/runs/{run.pk}/cancel/", follow=True)
    assert "Cancelled." in response.content.decode()
    assert Run.objects.get(pk=run.pk).status == RunStatus.CANCELLED


@pytest.mark.django_db
def test_a_submitter_cancels_only_runs_of_their_own(client: Client, submitter: User) -> None:
    own, other = fresh_run("own", created_by=submitter), fresh_run("other")
    client.force_login(submitter)
    assert client.post(f"/runs/{own.pk}/cancel/").status_code == 302
    assert client.post(f"/runs/{other.pk}/cancel/").status_code == 403
    assert Run.objects.get(pk=other.pk).status == RunStatus.QUEUED
    assert "Cancel run" not in html_of(client, other)


@pytest.mark.django_db
def test_a_stranger_and_a_viewer_cancel_nothing(client: Client) -> None:
    run = fresh_run()
    response = client.post(f"/runs/{run.pk}/cancel/")
    assert response["Location"] == f"/login/?next=/runs/{run.pk}/"
    client.force_login(person("vera", "viewer"))
    assert client.post(f"/runs/{run.pk}/cancel/").status_code == 403
    assert Run.objects.get(pk=run.pk).status == RunStatus.QUEUED


@pytest.mark.django_db
def test_a_link_cancels_nothing(client: Client, curator: User) -> None:
    run = fresh_run()
    client.force_login(curator)
    assert client.get(f"/runs/{run.pk}/cancel/").status_code == 405


def test_cancelling_what_has_ended_changes_nothing_and_says_so(
    client: Client, illusion: Run, curator: User
) -> None:
    client.force_login(curator)
    response = client.post(f"/runs/{illusion.pk}/cancel/", follow=True)
    assert "had already ended" in response.content.decode()
    assert Run.objects.get(pk=illusion.pk).status == RunStatus.FINISHED


def test_source_has_numbers_and_colours(client: Client, illusion: Run) -> None:
    html = html_of(client, illusion)
    assert 'class="linenos"' in html
    assert '<span class="nd">@triton' in html


def shape_fault(gate: GateId, shape: str, *, judged: bool = True) -> records.GateResult:
    """The finding of a gate on a kernel whose output has the wrong rank."""
    reason = f"out has shape [{shape}], not [{shape}, 1]"
    if not judged:
        reason = f"{reason}: gates 1, 4 and 5 judge that"
    status = GateStatus.FAIL if judged else GateStatus.NOT_APPLICABLE
    result = replace(samples.gate_result(gate, status), reason=reason)
    if result.counterexample is None:
        return result
    return replace(result, counterexample=replace(result.counterexample, detail=reason))


@pytest.mark.django_db
def test_a_fault_that_many_gates_meet_is_said_once(client: Client) -> None:
    faulty = {
        GateId.AGREEMENT: shape_fault(GateId.AGREEMENT, "1"),
        GateId.SHAPES: shape_fault(GateId.SHAPES, "16"),
        GateId.LAYOUT: shape_fault(GateId.LAYOUT, "3584", judged=False),
    }
    gates = tuple(faulty.get(one.gate, one) for one in samples.gate_results((GateId.RANGE,)))
    html = html_of(client, samples.run_judge(fresh_run(), samples.node_online(), gates))
    table = html.partition('id="run-gates"')[2]
    assert table.count("out has shape") - table.count('title="out has shape') == 1
    assert re.findall(r"same as gate (\d+)", table) == ["1", "1"]
    assert "1 Agreement: the smallest counterexample" in html
    assert '4 Shapes: same as <a href="#gate-1">gate 1</a>' in html
    assert "10 Range: the smallest counterexample" in html
    assert "--gate G4" in html


def test_no_status_is_shown_as_the_verifier_spells_it(client: Client, illusion: Run) -> None:
    verdict = samples.verdict_of(illusion, samples.gate_results())
    gates = tuple(
        replace(one, notes=(records.CaseNote(GateStatus.NOT_APPLICABLE, "no device", 5),))
        for one in verdict.gates
    )
    html = html_of(client, samples.run_judge(fresh_run(), samples.node_online(), gates))
    assert "5 cases not applicable: no device" in html
    shown = re.sub(r"<script.*?</script>|<[^>]+>", " ", html, flags=re.DOTALL)
    assert not re.search(r"not_applicable|notapplicable", shown, re.IGNORECASE)


def test_the_deep_mode_shows_each_tool_and_its_findings_beside_the_gates(
    client: Client, db: None
) -> None:
    found = records.DeepFinding(
        "Invalid __global__ read of size 8 bytes is out of bounds",
        "<b>k_oob_read</b>",
        thread=(116, 0, 0),
        block=(3, 0, 0),
        source="kernel.py:7",
        count=12,
    )
    deep = (
        records.DeepResult(
            "memcheck",
            records.DeepStatus.FINDINGS,
            "",
            12,
            (found,),
            1,
            ("deep usual",),
            "2025.3.1",
        ),
        records.DeepResult("racecheck", records.DeepStatus.UNDECIDED, "it did not end in time"),
    )
    run = samples.run_judge(fresh_run(), samples.node_online(), samples.gate_results(), deep=deep)
    html = html_of(client, run)
    assert (
        "&lt;b&gt;k_oob_read&lt;/b&gt;: Invalid __global__ read of size 8 bytes is out of bounds "
        "(kernel.py:7, thread (116,0,0), block (3,0,0)), 12x"
    ) in html
    assert "12 reported, 1 more in a library&#x27;s kernels; 1 call (deep usual)" in html
    assert "it did not end in time" in html
    assert "accepted" in html  # no gate, no say in the outcome


def test_without_the_deep_mode_the_page_says_how_to_ask_for_it(client: Client, db: None) -> None:
    run = samples.run_judge(fresh_run(), samples.node_online(), samples.gate_results())
    assert "-m verifier verify --deep" in html_of(client, run)
