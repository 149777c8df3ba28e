"""The least time of a workload, and what may be rejected for it."""

from __future__ import annotations

import pytest

from verifier.measure.roofline import Peaks, Work, floor_of, peaks_of

H200 = Peaks("H200 SXM", 4800, {"float32": 67, "tf32": 494, "bfloat16": 989}, "vendor")
MIB = 1 << 20


def test_bytes_over_bandwidth_where_memory_binds() -> None:
    floor = floor_of(Work(480 * 10**6, 0), H200, l2_bytes=0)
    assert floor.seconds == pytest.approx(100e-6)


def test_outputs_that_fit_the_l2_need_not_have_reached_memory() -> None:
    inside = floor_of(Work(48 * 10**6, 50 * MIB), H200, l2_bytes=50 * MIB)
    beyond = floor_of(Work(48 * 10**6, 50 * MIB + 48 * 10**6), H200, l2_bytes=50 * MIB)
    assert inside.seconds == pytest.approx(10e-6)
    assert beyond.seconds == pytest.approx(20e-6)


def test_products_over_their_rate_where_compute_binds() -> None:
    floor = floor_of(Work(1, 1, {"bfloat16": 989 * 10**9}), H200, l2_bytes=0)
    assert floor.seconds == pytest.approx(1e-3)


def test_fp32_products_may_be_as_fast_as_tf32() -> None:
    floor = floor_of(Work(1, 1, {"float32": 494 * 10**9}), H200, l2_bytes=0)
    assert floor.seconds == pytest.approx(1e-3)


def test_a_time_below_the_floor_is_rejected_with_the_arithmetic() -> None:
    floor = floor_of(Work(480 * 10**6, 0), H200, l2_bytes=0)
    assert floor.rejects(99e-6)
    assert floor.objection(99e-6) == (
        "99.00 us is below the roofline floor of 100.00 us: max of (480000000 B read + 0 B written "
        "past the L2) / 4800 GB/s = 100.00 us on H200 SXM (figures: vendor)"
    )


def test_a_time_at_the_floor_stands() -> None:
    floor = floor_of(Work(480 * 10**6, 0), H200, l2_bytes=0)
    assert not floor.rejects(100.1e-6)


def test_nothing_is_rejected_for_figures_that_nobody_checked() -> None:
    recalled = Peaks("B200", 8000, {}, "recalled")
    assert not floor_of(Work(10**9, 0), recalled, l2_bytes=0).rejects(1e-9)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H20", "H20"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A10", "A10"),
    ],
)
def test_a_device_is_known_by_the_name_that_cuda_gives_it(device: str, name: str) -> None:
    peaks = peaks_of(device)
    assert peaks is not None
    assert peaks.name == name


def test_an_unknown_device_has_no_floor() -> None:
    assert peaks_of("Voodoo 2") is None
