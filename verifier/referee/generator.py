"""Seeded values that are the same bytes on every machine, device and library version.

Philox-4x64-10 (Salmon et al., SC'11), keyed by blake2b over the master seed and a path of labels,
gives raw 64-bit words; everything after that is integer arithmetic and single IEEE operations that
are exactly rounded. No libm, no ziggurat, no torch generator: those differ between machines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

GENERATOR_VERSION: Final = 1

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def derive_seed(seed: int, *path: str | int) -> int:
    """A 63-bit sub-seed for a labelled place: blake2b over the seed and the path."""
    text = "\x1f".join(str(part) for part in (GENERATOR_VERSION, seed, *path))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


class Stream:
    """A stream of random words for one (seed, path); drawing twice goes on in the stream."""

    def __init__(self, seed: int, *path: str | int) -> None:
        key = derive_seed(seed, *path)
        self._philox = np.random.Philox(key=np.array([key, GENERATOR_VERSION], dtype=np.uint64))

    def words(self, count: int) -> Words:
        """``count`` uniform 64-bit words."""
        return np.asarray(self._philox.random_raw(count), dtype=np.uint64)

    def uniform(self, count: int) -> Floats:
        """Multiples of 2**-53 in [0, 1)."""
        whole = (self.words(count) >> np.uint64(11)).astype(np.float64)
        return np.asarray(np.ldexp(whole, -53), dtype=np.float64)

    def normal(self, count: int) -> Floats:
        """Nearly normal, mean 0, variance 1, within [-6, 6]: the sum of twelve 32-bit uniforms.

        Irwin-Hall, because its sum is exact in integers where Box-Muller needs a libm; 32 bits,
        because values with few bits sum without rounding and hide the order of the terms.
        """
        halves = self.words(6 * count).view(np.uint32).reshape(count, 12).astype(np.int64)
        whole = (2 * halves.sum(axis=1) - 12 * (2**32 - 1)).astype(np.float64)
        return np.asarray(np.ldexp(whole, -33), dtype=np.float64)

    def heavy(self, count: int) -> Floats:
        """Heavy-tailed, symmetric: sign * (1 + u) * 2**k / 2, k geometric up to 12."""
        words = self.words(count)
        magnitude = 1.0 + (words >> np.uint64(40)).astype(np.float64) * 2.0**-24
        low = (words & np.uint64(0xFFF)) | np.uint64(0x1000)
        exponent = np.frexp((low & (~low + np.uint64(1))).astype(np.float64))[1] - 1
        sign = 1.0 - 2.0 * ((words >> np.uint64(13)) & np.uint64(1)).astype(np.float64)
        return np.asarray(sign * np.ldexp(magnitude, exponent - 1), dtype=np.float64)

    def integers(self, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Uniform in [low, high); the bias of the modulus is below 2**-40 for spans below 2**24."""
        if high <= low:
            raise ValueError(f"empty range [{low}, {high})")
        return (self.words(count) % np.uint64(high - low)).astype(np.int64) + low

    def zipf(self, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Skewed towards ``low`` with many collisions: low + span * u**3."""
        u = self.uniform(count)
        return np.minimum(low + (u * u * u * (high - low)).astype(np.int64), high - 1)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """A permutation of range(count)."""
        return np.argsort(self.words(count), kind="stable").astype(np.int64)


def _low_bits(stream: Stream, count: int) -> Floats:
    """1 + j * 2**-20 with j in [1, 256], times 2**e with e in [-2, 2]: only fp32 can hold them."""
    mantissa = 1.0 + stream.integers(1, 257, count).astype(np.float64) * 2.0**-20
    return np.ldexp(mantissa, stream.integers(-2, 3, count))


FILLS: Final[Mapping[str, Callable[[Stream, int], Floats]]] = {
    "normal": lambda stream, count: stream.normal(count),
    "uniform": lambda stream, count: stream.uniform(count),
    "wide": lambda stream, count: stream.uniform(count) * 20.0 - 10.0,
    "heavy": lambda stream, count: stream.heavy(count),
    "logits": lambda stream, count: stream.normal(count) * 24.0,
    "small_int": lambda stream, count: stream.integers(-4, 5, count).astype(np.float64),
    "positive_int": lambda stream, count: stream.integers(1, 5, count).astype(np.float64),
    "low_bits": _low_bits,
    "ones": lambda stream, count: np.ones(count),
    "zeros": lambda stream, count: np.zeros(count),
}
"""Value patterns by name. They give float64; the inputs are then rounded to their own dtype."""
