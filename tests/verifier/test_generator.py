"""A seed gives the same bytes everywhere: the digests below were computed once and never change."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from verifier.referee.generator import FILLS, Stream, derive_seed

GOLDEN = {
    "normal": "4e57e4221ccab537",
    "uniform": "eefdf32ee8a45cc5",
    "wide": "7932e8b5d949a178",
    "heavy": "bf3719840e10a9aa",
    "logits": "46ff91d0befb9a72",
    "small_int": "42814ac24235219e",
    "positive_int": "d9dacfdfae046a3e",
    "low_bits": "b7dd703e625e8324",
    "ones": "e4190bf93e24bcf8",
    "zeros": "668946bab9868b28",
}


def test_every_fill_has_a_golden_digest() -> None:
    assert FILLS.keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_seed_gives_the_same_bytes(name: str) -> None:
    values = FILLS[name](Stream(7, "golden", name), 1000)
    assert hashlib.sha256(values.tobytes()).hexdigest()[:16] == GOLDEN[name]


def test_sub_seeds_depend_on_every_part_of_the_path() -> None:
    assert derive_seed(1, "a", 2) == 5135421615601851930
    paths = [("a", 2), ("a", 3), ("b", 2), ("a2",), ("a", "2", "")]
    assert len({derive_seed(1, *path) for path in paths}) == len(paths)
    assert all(0 <= derive_seed(s, "x") < 2**63 for s in range(100))


def test_normal_has_mean_zero_and_variance_one() -> None:
    values = Stream(3, "n").normal(100_000)
    assert abs(values.mean()) < 0.02
    assert abs(values.var() - 1) < 0.02
    assert np.abs(values).max() < 6


def test_uniform_stays_below_one() -> None:
    values = Stream(3, "u").uniform(100_000)
    assert 0 <= values.min() < 0.001
    assert 0.999 < values.max() < 1


def test_heavy_has_both_signs_and_a_tail() -> None:
    values = Stream(3, "h").heavy(10_000)
    assert np.abs(values).max() > 500
    assert np.median(np.abs(values)) < 2
    assert 0.45 < (values > 0).mean() < 0.55


def test_low_bits_are_exact_in_fp32_and_lost_in_tf32() -> None:
    values = FILLS["low_bits"](Stream(3, "l"), 1000)
    assert (values.astype(np.float32).astype(np.float64) == values).all()
    mantissa = np.frexp(values)[0] * 2**11
    assert (mantissa != np.round(mantissa)).all()


def test_zipf_collides_and_permutation_does_not() -> None:
    stream = Stream(3, "i")
    ids = stream.zipf(0, 100, 1000)
    assert ids.min() >= 0
    assert ids.max() < 100
    assert (ids == 0).sum() > 100
    assert sorted(stream.permutation(50)) == list(range(50))


def test_normal_values_use_every_mantissa_bit_of_fp32() -> None:
    values = Stream(3, "bits").normal(1000).astype(np.float32)
    assert (values.view(np.uint32) & 1).mean() > 0.4
