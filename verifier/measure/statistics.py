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
