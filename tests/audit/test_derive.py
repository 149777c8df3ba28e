"""A contract from a benchmark's own reference and test: what it promises, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from verifier.audit.derive import derive
from verifier.audit.deriving import Definition
from verifier.audit.tracing import TraceError

HEAD = "import torch\nimport torch.nn.functional as F\n\n"


def definition(code: str, calls: str, stem: str = "f") -> Definition:
    test = HEAD + f"def test():\n    results = {{}}\n    {calls}\n    return results\n\ntest()\n"
    return Definition("sample", "Sample", "elementwise", HEAD + code, test, stem)


def contract(code: str, calls: str) -> dict[str, Any]:
    task = derive(definition(code, calls)).task
    assert task is not None
    document: dict[str, Any] = json.loads(task.contract)
    return document


def test_sizes_that_the_reference_takes_at_any_value_are_free() -> None:
    found = contract(
        "def f(x):\n    return F.softmax(x, -1)\n", "f(torch.randn(3, 5, device='cuda'))"
    )
    assert found["inputs"][0]["shape"] == ["D0", "D1"]
    assert found["outputs"][0]["shape"] == ["D0", "D1"]
    assert found["behaviour"]["fixed_shape"] is False


def test_the_size_of_a_convolution_is_found_as_an_expression() -> None:
    code = "def f(x, w):\n    return F.conv1d(x, w, stride=2)\n"
    found = contract(code, "f(torch.randn(2, 5, 11), torch.randn(4, 5, 3))")
    length = found["inputs"][0]["shape"][2]
    assert found["outputs"][0]["shape"] == ["D0", "D3", f"({length} - 3) // 2 + 1"]
    assert found["dims"][length]["minimum"] == 11


def test_a_domain_is_bounded_only_where_the_reference_needs_it() -> None:
    free = contract("def f(x):\n    return x * 2\n", "f(torch.rand(8))")
    bounded = contract("def f(x):\n    return x.log()\n", "f(torch.rand(8) + 1)")
    assert free["inputs"][0]["domain"] == {"kind": "real"}
    assert bounded["inputs"][0]["domain"]["low"] >= 1


def test_a_prediction_is_called_the_way_the_test_calls() -> None:
    code = "def f(x, scale=1.0, *, shift=0.0):\n    return x * scale + shift\n"
    found = derive(definition(code, "f(torch.randn(4), shift=2.0)"))
    assert "return f(a0, shift=2.0)" in found.shim


def test_a_prediction_gets_the_imports_of_the_test_that_stood_below_it() -> None:
    found = derive(definition("def f(x):\n    return x + 1\n", "f(torch.randn(4))"))
    assert "\nimport torch\n" in found.shim


def test_the_empty_tensor_is_in_the_contract_where_it_was_tested() -> None:
    found = contract("def f(x):\n    return x + 1\n", "f(torch.randn(4)); f(torch.randn(0))")
    assert found["dims"]["D0"]["minimum"] == 0


def test_a_call_that_the_reference_refuses_is_no_task() -> None:
    code = "def f(x):\n    if x.dim() == 1:\n        raise ValueError\n    return x + 1\n"
    calls = (
        "\n    try:\n        f(torch.randn(4))"
        "\n    except ValueError:\n        f(torch.randn(2, 2))"
    )
    assert len(contract(code, calls)["inputs"][0]["shape"]) == 2


@pytest.mark.parametrize(
    ("code", "calls", "reason"),
    [
        ("def f(x):\n    return F.dropout(x)\n", "f(torch.randn(64))", "random"),
        ("def f(x):\n    return x.add_(1)\n", "f(torch.randn(4))", "in place"),
        ("def f(x):\n    return x.float() * 2\n", "f(torch.randn(4))", "float64"),
        ("def f(x):\n    return torch.linalg.cholesky(x)\n", "f(torch.eye(4) * 2)", "structure"),
        ("def f(x, d):\n    return x.to(d)\n", "f(torch.randn(4), torch.float16)", "dtype"),
        ("def f(x):\n    return 'words'\n", "f(torch.randn(4))", "str"),
        ("def f(n):\n    return torch.ones(n)\n", "f(3)", "no call"),
    ],
)
def test_what_no_contract_can_hold_is_refused_with_the_reason(
    code: str, calls: str, reason: str
) -> None:
    with pytest.raises(TraceError, match=reason):
        derive(definition(code, calls))
