"""The 26 distinct ops through the whole pipeline: scans."""

from __future__ import annotations

from tests.benchmarks.fuzzoracle.verdicts import (  # noqa: F401 - pytest collects the tests here
    distinct,
    test_a_control_is_accepted,
    test_a_gate_catches_its_witness,
    test_an_illusion_is_caught,
    test_the_loose_test_accepts_a_control,
    test_the_loose_test_accepts_an_illusion,
)

ENTRIES = distinct("scans")
