"""The Verifier page shows what the studies stored, and how to make what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from kernelhub.web import studies as page
from kernelhub.web.figures import RulePoint, figure_json, threshold_figure
from tests.verifier import studies_samples as samples
from verifier.records import DeviceMode, GateId, GateStatus
from verifier.statistics import wilson
from verifier.studies import Control, store, study_path

COMMANDS = (
    "-m verifier selfcheck",
    "-m verifier defend positive",
    "-m verifier defend thresholds",
    "-m verifier defend agreement",
    "-m verifier defend audit export",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the page looks, empty at first."""
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    return tmp_path


def put(folder: Path, study: Any) -> None:
    store(study, study_path(type(study), study.origin.environment.mode, folder))


def html_of(client: Client) -> str:
    answer = client.get("/verifier/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_empty_page_names_the_command_for_each_study(
    folder: Path, client: Client, db: None
) -> None:
    html = html_of(client)
    assert html.count("Not made yet") == 5
    assert all(command in html for command in COMMANDS)


def test_a_clean_sweep_says_so(folder: Path, client: Client, db: None) -> None:
    put(folder, samples.control_sweep())
    assert "1 control on 1 task, and none is accused of anything." in html_of(client)


def test_an_accused_control_is_named_with_its_gate_and_reason(
    folder: Path, client: Client, db: None
) -> None:
    accused = samples.gate(GateId.SHAPES, GateStatus.FAIL, "off by a mile")
    put(folder, samples.control_sweep(samples.control_row(Control.COMPILE, "rope", accused)))
    html = html_of(client)
    assert "1 finding against kernels that are right." in html
    assert "G4 fail" in html
    assert "fuzzoracle/rope, compile" in html
    assert "off by a mile" in html


def test_a_planted_fault_that_cannot_show_here_gives_its_reason(
    folder: Path, client: Client, db: None
) -> None:
    hidden = samples.planted(GateStatus.PASS, not_here="programs run one after the other")
    put(folder, samples.positive_control(samples.planted(), hidden))
    html = html_of(client)
    assert "1 of 1 planted violators are caught; 1 fault cannot show on this device." in html
    assert "programs run one after the other" in html


def test_the_threshold_sweep_draws_its_curve_and_marks_the_rule_in_use(
    folder: Path, client: Client, db: None
) -> None:
    put(folder, samples.threshold_sweep())
    html = html_of(client)
    assert "rejects 10 of 10 wrong kernels and accuses 0 of 8 controls" in html
    assert 'data-figure="thresholds-cpu-interpret-data"' in html
    assert "<b>10, 0</b>" in html


def test_a_disagreement_that_nobody_explained_says_so(
    folder: Path, client: Client, db: None
) -> None:
    put(folder, samples.agreement_study())
    html = html_of(client)
    assert "The two agree on 66.7%" in html
    assert "not explained" in html


def test_the_hand_audit_shows_its_error_rate_with_its_interval(
    folder: Path, client: Client, db: None
) -> None:
    put(folder, samples.hand_audit())
    assert "33.3% (95% 6.1% to 79.2%, n = 3) of the findings" in html_of(client)


def test_a_study_of_an_earlier_gate_set_says_that_it_is_old(
    folder: Path, client: Client, db: None
) -> None:
    study = samples.control_sweep()
    put(folder, replace(study, origin=replace(study.origin, gate_set=0)))
    assert "which has changed since" in html_of(client)


@pytest.mark.parametrize(
    ("made_at", "shown"),
    [("2026-11-30T23:48:35+00:00", '<time data-ago datetime="2026-11-30T23:48:35'), ("once", "")],
)
def test_when_a_study_was_made_is_told_in_the_readers_time(
    folder: Path, client: Client, db: None, made_at: str, shown: str
) -> None:
    study = samples.control_sweep()
    put(folder, replace(study, origin=replace(study.origin, made_at=made_at)))
    html = html_of(client)
    assert shown in html
    assert "none is accused of anything" in html


def test_a_document_that_does_not_fit_is_told_and_breaks_nothing(
    folder: Path, client: Client, db: None
) -> None:
    (folder / "agreement-cuda.json").write_text("[]")
    put(folder, samples.control_sweep())
    html = html_of(client)
    assert "What is stored cannot be read" in html
    assert "none is accused of anything" in html


def test_a_gpu_and_the_interpreter_are_shown_beside_each_other(
    folder: Path, client: Client, db: None
) -> None:
    study = samples.positive_control()
    put(folder, study)
    gpu = replace(study.origin.environment, mode=DeviceMode.CUDA, device_name="NVIDIA H200")
    put(folder, replace(study, origin=replace(study.origin, environment=gpu)))
    html = html_of(client)
    assert html.index("NVIDIA H200") < html.index("interpreter, no GPU")


def test_what_a_kernel_said_is_escaped(folder: Path, client: Client, db: None) -> None:
    accused = samples.gate(GateId.SHAPES, GateStatus.FAIL, "<script>alert(1)</script>")
    put(folder, samples.control_sweep(samples.control_row(Control.EAGER, "x", accused)))
    assert "<script>alert" not in html_of(client)


def test_the_curve_has_a_line_for_wrong_kernels_and_one_for_controls() -> None:
    points = [
        RulePoint(1.0, wilson(9, 10), wilson(2, 8)),
        RulePoint(2.0, wilson(10, 10), wilson(0, 8)),
    ]
    figure = figure_json(threshold_figure(points, in_use=2.0))
    wrong, controls = figure["data"]
    assert (wrong["name"], list(wrong["y"])) == ("wrong kernels", [0.9, 1.0])
    assert (controls["name"], list(controls["y"])) == ("controls", [0.25, 0.0])
    assert figure["layout"]["shapes"][0]["x0"] == 2.0


def test_the_curve_names_its_colours_by_token() -> None:
    figure = figure_json(threshold_figure([RulePoint(2.0, wilson(1, 2), wilson(0, 2))], 2.0))
    colors = [trace["line"]["color"] for trace in figure["data"]]
    assert all(color.startswith("var(--") for color in colors)
