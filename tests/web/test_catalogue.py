"""The web's words about the gates and the verifier's own list are one list."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kernelhub.web.catalogue import GATES, LOOKS, run_look
from verifier.records import GateId, GateStatus, Outcome


@pytest.fixture(scope="module")
def verifier_gates() -> dict[str, dict[str, object]]:
    """What `python -m verifier gates --json` says, in its own process: it loads torch."""
    command = [sys.executable, "-m", "verifier", "gates", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return {gate["id"]: gate for gate in json.loads(done.stdout)}


def test_the_twelve_gates_stand_in_their_order() -> None:
    assert tuple(page.id for page in GATES) == tuple(GateId)


def test_the_page_marks_as_exact_what_the_verifier_calls_tolerance_free(
    verifier_gates: dict[str, dict[str, object]],
) -> None:
    shown = {page.id.value: page.exact for page in GATES}
    assert shown == {name: gate["tolerance_free"] for name, gate in verifier_gates.items()}


def test_the_page_calls_gates_by_the_verifiers_names(
    verifier_gates: dict[str, dict[str, object]],
) -> None:
    shown = {page.id.value: page.name for page in GATES}
    assert shown == {name: gate["name"] for name, gate in verifier_gates.items()}


def test_every_gate_and_outcome_has_a_look() -> None:
    assert set(LOOKS) == set(GateStatus)
    assert {run_look("finished", one).word for one in Outcome} == {one.value for one in Outcome}
