"""The table that ends the demo of `make run`, in terminals of every width."""

from __future__ import annotations

import pytest

from kernelhub.core import services
from kernelhub.core.choices import ErrorKind
from kernelhub.core.models import Campaign
from kernelhub.launch.demo import result_table
from kernelhub.launch.terminal import first_that_fits
from tests import factories as make

LONGEST = "flash_attention_counts_padding"
FAILED = ("G1", "G2", "G4", "G5", "G10")


@pytest.fixture
def campaign(db: None) -> Campaign:
    """One control, one illusion with a long name, one that our machinery broke."""
    suite, campaign = make.make_suite("fuzzoracle"), make.make_campaign()
    task = make.make_task(suite, "op-flash-attention")
    for label, expectation, failed in (
        ("flash_attention_honest", "control", ()),
        (LONGEST, "illusion", FAILED),
    ):
        kernel = make.make_kernel(task, label=label, expectation=expectation, group="g")
        make.make_finished(make.make_run(kernel, campaign=campaign), failed=failed)
    kernel = make.make_kernel(task, label="flash_attention_lost", group="g")
    lease = make.make_lease(make.make_run(kernel, campaign=campaign, max_attempts=1))
    words = "the node was lost\nwhile it judged the third of its cases, and nobody knows why"
    services.run_error(run_id=lease.run.pk, attempt=1, kind=ErrorKind.INFRASTRUCTURE, message=words)
    return campaign


def shown(campaign: Campaign, monkeypatch: pytest.MonkeyPatch, columns: int | None) -> list[str]:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    return result_table(campaign.pk).splitlines()


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 90, 100, 120, 160])
def test_no_line_is_wider_than_the_terminal(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    lines = shown(campaign, monkeypatch, columns)
    assert len(lines) == 5  # a head, its rule, a line for each run
    assert max(map(len, lines)) <= columns


def test_a_wide_terminal_gets_every_word(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(shown(campaign, monkeypatch, 200))
    assert "fuzzoracle/op-flash-attention" in text
    assert "rejected (illusion)" in text
    assert "G1 G2 G4 G5 G10" in text
    assert "the node was lost while it judged" in text


def test_eighty_columns_keep_labels_verdicts_and_gates_whole(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(campaign, monkeypatch, 80)
    (illusion,) = [line for line in lines if LONGEST in line]
    assert illusion.split()[:4] == [LONGEST, "illusion", "accepts", "illusion"]
    assert illusion.endswith("  1 2 4 5 10")
    (errored,) = [line for line in lines if "flash_attention_lost" in line]
    assert errored.split() == ["flash_attention_lost", "errored", "infrastructure"]


def test_a_log_file_counts_as_eighty_columns(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(campaign, monkeypatch, None) == shown(campaign, monkeypatch, 80)


def test_the_first_table_that_fits_is_taken() -> None:
    assert first_that_fits(["wide wide", "narrow"], 9) == "wide wide"
    assert first_that_fits(["wide wide", "narrow"], 8) == "narrow"
    assert first_that_fits(["much wider", "still wide"], 9) == "still ..."
