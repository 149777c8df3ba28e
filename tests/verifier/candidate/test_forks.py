"""Processes that fork candidates: torch lets no child use a GPU whose parent has asked for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]

_WARMS_AS_WITH_CUDA: Final = """
import torch._dynamo

def asked(*_):
    raise SystemExit("a device was asked for")

torch.version.cuda = "13.0"  # a build of torch with CUDA asks for devices where this one does not
torch.cuda._is_compiled = lambda: True
torch.cuda.is_available = torch.cuda.device_count = torch.cuda._lazy_init = asked

from verifier.candidate import host
from verifier.candidate.engine import Engine

host.warm(engine=Engine.GPU, threads=1)
print("no device was asked for")
"""


def test_the_forkserver_asks_for_no_device_while_it_warms_up(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", _WARMS_AS_WITH_CUDA],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "no device was asked for\n", ran.stderr[-2000:]
