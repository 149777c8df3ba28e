"""What the comparator allows a sum: the order of its terms, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.gates.inprocess import make_bench
from verifier.gate import Finding
from verifier.records import GateId

Terms = np.ndarray[Any, np.dtype[Any]]
Sum = Callable[[Terms], Terms]
LENGTH = 32768


def in_turn(terms: Terms) -> Terms:
    return np.asarray(np.cumsum(terms, axis=0, dtype=np.float32)[-1])


def without_the_last_term(terms: Terms) -> Terms:
    return np.asarray(terms[:-1].astype(np.float64).sum(axis=0))


def of_rounded_factors(terms: Terms) -> Terms:
    return np.asarray(terms.astype(np.float16).astype(np.float64).sum(axis=0))


def compared(sums: Sum, seed: int) -> Finding:
    bench = replace(make_bench("matmul"), seed=seed)
    dims = {"M": 2, "N": 2, "K": LENGTH}
    case = bench.case(GateId.LAYOUT, "long", dims=dims, dtypes={"T": "float32"})
    args = bench.args(case)
    a, b = (arg.numpy() for arg in args if isinstance(arg, torch.Tensor))
    products = np.multiply(a.T[:, :, None], b[:, None, :], dtype=np.float32)
    result = np.ascontiguousarray(sums(products), dtype=np.float32)
    return bench.compare(case, args, (torch.from_numpy(result),))


def test_terms_may_be_added_in_turn() -> None:
    findings = [compared(in_turn, seed) for seed in range(12)]
    assert all(finding.passed for finding in findings), findings


@pytest.mark.parametrize("sums", [without_the_last_term, of_rounded_factors])
def test_a_term_may_not_be_left_out_nor_rounded(sums: Sum) -> None:
    assert all(compared(sums, seed).failed for seed in range(3))
