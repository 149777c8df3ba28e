"""What compute-sanitizer writes, read as data of a hostile kernel's."""

from __future__ import annotations

import pytest

from tests.verifier.deep.reports import (
    CUDART,
    TORCH,
    TRITON,
    access,
    copy,
    race,
    race_summary,
    report,
    summary,
)
from verifier.deep.report import Report, ReportError, read_report
from verifier.records import DeepFinding

SOURCE = "__global__ void rows(const float* x) {}"


def read(xml: str, text: str) -> Report:
    return read_report(xml.encode(), text.encode(), SOURCE)


def test_an_empty_report_with_a_summary_of_none_is_clean() -> None:
    assert read(report(), summary(0)) == Report(0, (), 0)


def test_a_finding_has_kernel_place_and_thread_and_counts_those_alike() -> None:
    records = [access("rows&lt;float&gt;", TRITON, thread=n) for n in (116, 117)]
    found = read(report(*records), summary(2))
    assert found.findings == (
        DeepFinding(
            "Invalid __global__ read of size 8 bytes is out of bounds",
            "rows<float>",
            space="global",
            level="error",
            thread=(116, 0, 0),
            block=(3, 0, 0),
            source="kernel.py:7",
            count=2,
        ),
    )
    assert (found.count, found.elsewhere) == (2, 0)


def test_errors_beyond_the_tools_print_limit_are_counted() -> None:
    found = read(report(access("rows", TRITON, tool="initcheck")), summary(1314, 1313))
    assert found.count == 1314


@pytest.mark.parametrize(
    ("name", "modules", "own"),
    [
        ("rows", (TRITON,), True),
        ("at::native::copy", (TRITON,), True),  # a name that hides nothing
        ("rows", (CUDART, TORCH), False),
        ("rows", (CUDART, "/scratch/extension.so", TORCH), True),
        ("rows", (), True),  # the driver's own API, through ctypes
    ],
)
def test_who_launched_it_decides_whose_it_is(
    name: str, modules: tuple[str, ...], own: bool
) -> None:
    found = read(report(access(name, *modules)), summary(1))
    assert (found.count, found.elsewhere) == ((1, 0) if own else (0, 1))


def test_a_race_says_between_what_and_is_the_kernels_if_its_source_has_the_name() -> None:
    found = read(report(race("rows(float const*)"), race("gemm_f32")), race_summary(2))
    assert (found.count, found.elsewhere) == (1, 1)
    assert found.findings[0].what == "Race condition"
    assert found.findings[0].source == "kernel.cu:41"
    assert found.findings[0].detail == "write here, read at kernel.cu:41 (4000 hazards)"


def test_an_output_that_nobody_wrote_is_told_by_its_first_such_byte() -> None:
    found = read(report(copy(1984, 4000), copy(2016, 4000)), summary(2))
    assert found.findings == (
        DeepFinding(
            "Host API uninitialized memory access",
            "",
            level="error",
            detail="nobody wrote byte 1984 of 4000 that were copied",
            count=2,
        ),
    )


def test_a_barrier_error_says_which() -> None:
    found = read(report(access("rows", TRITON, tool="synccheck")), summary(1))
    assert found.findings[0].detail == "Divergent thread(s) in warp"


@pytest.mark.parametrize(
    ("xml", "text", "reason"),
    [
        (report(), "========= COMPUTE-SANITIZER\n", "no summary"),
        (report(), summary(0) + summary(0), "no summary"),
        (report(), summary(3), "counts 3 errors and describes 0"),
        (report(access("rows")), summary(0), "counts 0 errors and describes 1"),
        (report(access("rows"))[:-30], summary(1), "no XML"),
        (report(access("a\x1bb")), summary(1), "no XML"),
        (f'<!DOCTYPE x [<!ENTITY a "b">]>{report()}', summary(0), "entities"),
        ("<record/>", summary(0), "no ComputeSanitizerOutput"),
        (
            report(),
            "========= Internal Sanitizer Error: it didn't track the launch\n" + summary(0),
            "Internal Sanitizer Error",
        ),
        (
            report(),
            "========= Error: Target application terminated before first instrumented API call\n",
            "terminated before",
        ),
    ],
)
def test_what_is_no_whole_report_is_refused(xml: str, text: str, reason: str) -> None:
    with pytest.raises(ReportError, match=reason):
        read(xml, text)
