"""A checkout below /tmp, which is where continuous integration likes to put one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from verifier.candidate import outer
from verifier.candidate.client import Sandbox
from verifier.candidate.limits import Limits
from verifier.records import DeviceMode

KERNEL = b"""
import pathlib
import tempfile

def run(x):
    pathlib.Path(tempfile.gettempdir(), "note").write_text("scratch is writable")
    return x + len(pathlib.Path(%r).read_text())
"""


def test_libraries_below_tmp_stay_visible_in_the_strong_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tmp_path.is_relative_to("/tmp"), "set TMPDIR to a folder below /tmp for this test"
    library = tmp_path / "library"
    library.mkdir(mode=0o755)
    (library / "data").write_text("12345")
    visible = outer._visible()
    monkeypatch.setattr(outer, "_visible", lambda: [*visible, str(library)])
    mode = DeviceMode.CPU_INTERPRET
    with Sandbox.open(mode=mode, device="cpu", limits=Limits()) as sandbox:
        candidate = sandbox.load(source=KERNEL % str(library / "data"), entry="run")
        reply = candidate.call([torch.zeros(2)])
        candidate.close()
        assert sandbox.description.startswith("bubblewrap")
    assert reply.returned, reply.detail
    assert reply.outputs[0].tolist() == [5.0, 5.0]
