"""What Triton puts into its language for a launch is put in and taken out as Triton would."""

from __future__ import annotations

import pytest
import triton.language as tl
from triton.runtime import interpreter

from verifier.candidate.interpreter import _Parts


def seen() -> dict[str, object]:
    """What a kernel meets: functions of the language, and operators of its tensors."""
    owners = {"tl": tl, "core": tl.core, "math": tl.math, "tensor": tl.core.tensor}
    return {f"{name}.{key}": value for name, o in owners.items() for key, value in vars(o).items()}


@pytest.fixture
def parts() -> _Parts:
    scope = interpreter._patch_lang(seen)
    try:
        return _Parts(scope)
    finally:
        scope.restore()


def test_the_same_is_put_in_once_more_and_taken_out(parts: _Parts) -> None:
    scope = interpreter._patch_lang(seen)
    theirs = set(seen())
    scope.restore()
    before = seen()
    assert parts.put()
    inside = seen()
    assert set(inside) == theirs
    assert inside["tl.load"] is not before["tl.load"]
    assert "tensor.__bool__" in inside
    parts.restore()
    assert seen() == before


def test_nothing_is_put_into_a_language_that_has_changed(
    parts: _Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tl, "load", lambda *args: None)
    before = seen()
    assert not parts.put()
    assert seen() == before
