"""Which gates repeat the fault that an earlier one found."""

from __future__ import annotations

from kernelhub.web.present import Finding
from kernelhub.web.repeats import repeated
from verifier.wording import fault_of


def finding(gate: str, reason: str, status: str = "FAIL") -> Finding:
    return Finding(gate=gate, status=status, reason=reason)


def repeats(*findings: Finding) -> dict[str, int]:
    return {gate: page.number for gate, page in repeated(findings).items()}


def test_sizes_of_a_shape_are_no_difference_and_ranks_are() -> None:
    assert fault_of("[1], not [1, 1]") == fault_of("[16], not [2, 8]")
    assert fault_of("[1], not [1, 1]") != fault_of("[1, 1], not [1, 1]")


def test_figures_are_findings() -> None:
    assert not repeats(
        finding("G4", "out is off by 0.142; eager is off by 1e-8"),
        finding("G10", "out is off by 0.5; eager is off by 1e-8"),
    )


def test_the_first_gate_speaks_for_all_that_say_the_same() -> None:
    text = "TypeError: run() takes 1 argument"
    assert repeats(finding("G5", text), finding("G1", text), finding("G4", text)) == {
        "G4": 1,
        "G5": 1,
    }


def test_a_gate_that_leaves_the_fault_to_others_repeats_it_too() -> None:
    fault = "out has shape [3], not [1, 3]"
    left = finding("G7", f"{fault}: gates 1, 4 and 5 judge that", "NOT_APPLICABLE")
    assert repeats(finding("G1", fault), left) == {"G7": 1}


def test_what_no_gate_failed_for_is_nobodys_repetition() -> None:
    reason = "there is no GPU on this node"
    gates = [finding(gate, reason, "NOT_APPLICABLE") for gate in ("G3", "G12")]
    assert not repeats(*gates)


def test_an_empty_reason_repeats_nothing() -> None:
    assert not repeats(finding("G1", ""), finding("G2", ""), finding("G3", "wrong in 3 places"))
