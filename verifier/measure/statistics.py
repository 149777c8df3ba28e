"""Medians and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from verifier.referee.generator import Stream

RESAMPLES: Final = 1000


@dataclass(frozen=True, slots=True)
class Interval:
    """A median with its bootstrap 95% interval, in the unit of the samples."""

    median: float
    low: float
    high: float
    n: int


def median_interval(samples: Sequence[float], *, seed: int = 0) -> Interval:
    """Percentile bootstrap of the median (Efron 1979) with 1,000 resamples from our own generator.

    Raises ValueError when there is no sample.
    """
    if not samples:
        raise ValueError("no samples")
    values = np.asarray(samples, dtype=np.float64)
    draws = Stream(seed, "bootstrap").integers(0, len(values), RESAMPLES * len(values))
    medians = np.median(values[draws].reshape(RESAMPLES, len(values)), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    median = float(np.median(values))
    return Interval(median, min(float(low), median), max(float(high), median), len(values))


def grouped_interval(groups: Sequence[Sequence[float]], *, seed: int = 0) -> Interval:
    """The median over all samples, and its 95% interval when first the repeats and then the calls
    in each are drawn anew (two-stage bootstrap, Davison and Hinkley 1997, section 3.8): calls of
    one repeat share its clock rate and temperature, so they are no independent samples.

    Raises ValueError when there is no sample.
    """
    arrays = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    if not arrays:
        raise ValueError("no samples")
    stream = Stream(seed, "grouped bootstrap")
    medians = [_redrawn_median(arrays, stream) for _ in range(RESAMPLES)]
    low, high = np.quantile(medians, [0.025, 0.975])
    median = float(np.median(np.concatenate(arrays)))
    count = sum(map(len, arrays))
    return Interval(median, min(float(low), median), max(float(high), median), count)


def _redrawn_median(arrays: Sequence[np.typing.NDArray[np.float64]], stream: Stream) -> float:
    chosen = [arrays[i] for i in stream.integers(0, len(arrays), len(arrays))]
    drawn = [group[stream.integers(0, len(group), len(group))] for group in chosen]
    return float(np.median(np.concatenate(drawn)))
