"""Work whose right answer is known to the bit, done by the device that is asked how it is."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

MIB: Final = 1 << 20
WORDS: Final = 1 << 18
ROUNDS: Final = 8
FACTOR: Final = 6364136223846793005
INCREMENT: Final = 1442695040888963407
"""Knuth's linear congruential generator modulo 2**64 (MMIX)."""
DEPTH: Final = 128
"""Sums of so many products of -1, 0 and 1 are whole numbers below 2**8: exact in every dtype."""
DTYPES: Final = (torch.float32, torch.float16, torch.bfloat16)
PATTERNS: Final = (0x5555555555555555, -0x5555555555555556)
"""Each bit is once set and once not, its neighbours always the other way."""


def words_right() -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The words that ``words_wrong`` must find, by numpy on the processor."""
    words = np.arange(WORDS, dtype=np.uint64)
    for _ in range(ROUNDS):
        words = words * np.uint64(FACTOR) + np.uint64(INCREMENT)
    return words


def words_wrong(device: torch.device) -> str:
    """Integer arithmetic; what is wrong with the answer, '' when it is right to the bit."""
    words = torch.arange(WORDS, dtype=torch.int64, device=device)
    for _ in range(ROUNDS):
        words = words * FACTOR + INCREMENT
    got = words.cpu().numpy().view(np.uint64)
    differ = int((got != words_right()).sum())
    return f"{differ} of {WORDS} integers came out wrong" if differ else ""


def products_wrong(device: torch.device) -> str:
    """Matrix products of small whole numbers, which no order of adding and no precision rounds."""
    left, right = (
        torch.from_numpy(_small((256, DEPTH), 1)),
        torch.from_numpy(_small((DEPTH, 256), 2)),
    )
    expected = torch.from_numpy(left.numpy() @ right.numpy())
    wrong = []
    for dtype in DTYPES:
        got = torch.mm(left.to(device, dtype), right.to(device, dtype)).cpu()
        if not torch.equal(got.to(torch.int64), expected):
            wrong.append(str(dtype).removeprefix("torch."))
    return f"matrix products came out wrong in {', '.join(wrong)}" if wrong else ""


def _small(shape: tuple[int, int], seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(-1, 2, shape, dtype=np.int64)


def memory_wrong(device: torch.device, nbytes: int) -> str:
    """Write and read back ``nbytes``: alternating bits, then each word its own address."""
    words = torch.empty(max(1, nbytes // 8), dtype=torch.int64, device=device)
    for pattern in PATTERNS:
        words.fill_(pattern)
        if differ := int((words != pattern).sum()):
            return f"{differ} of {words.numel()} words of memory do not hold {pattern & _ALL:#x}"
    torch.arange(words.numel(), out=words)
    if differ := int((words != torch.arange(words.numel(), device=device)).sum()):
        return f"{differ} of {words.numel()} words of memory do not hold their address"
    return ""


_ALL: Final = (1 << 64) - 1
