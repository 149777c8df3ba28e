"""What a node agent is told by its environment; every wrong value is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelhub.programs import BIN

REPO: Final = Path(__file__).resolve().parents[1]

PASSED_ON: Final = frozenset({"PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"})
PASSED_ON_PREFIXES: Final = (
    *("LC_", "CUDA_", "NVIDIA_", "LD_", "TRITON_", "TORCH", "OMP_", "PYTHON"),
    *("KERNELHUB_VERIFIER_", "KERNELHUB_VAR"),
)


class ConfigError(ValueError):
    """The agent cannot start as it is configured; the message says what to set."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent: one device, one hub, ``workers`` verifiers side by side."""

    hub_url: str
    token: str
    broker_url: str
    device: str
    scratch: Path
    verifier: tuple[str, ...]
    wall_s: float = 900.0
    """Longest time for one run; the verifier has its own, shorter limits for what it calls."""
    ready_s: float = 180.0
    poll_s: float = 2.0
    rest_s: float = 30.0
    """How long the node rests after its first failed examination; later rests are longer."""
    workers: int = 1
    deep: bool = False
    """Whether each kernel is also looked into with compute-sanitizer (docs/deep.md)."""

    @classmethod
    def from_environment(
        cls, device: str, environ: Mapping[str, str] = os.environ, *, workers: int = 1
    ) -> AgentConfig:
        """ConfigError when KERNELHUB_NODE_TOKEN is missing."""
        token = environ.get("KERNELHUB_NODE_TOKEN", "").strip()
        if not token:
            raise ConfigError(
                "KERNELHUB_NODE_TOKEN is not set; "
                f"`{BIN}/python manage.py node_create NAME` makes one."
            )
        var = Path(environ.get("KERNELHUB_VAR", "") or REPO / "var")
        return cls(
            hub_url=environ.get("KERNELHUB_HUB_URL", "") or "http://127.0.0.1:8000",
            token=token,
            broker_url=environ.get("BROKER_URL", ""),
            device=device,
            scratch=var / "nodes" / _folder_name(device, environ),
            verifier=(
                *(sys.executable, "-m", "verifier", "serve", "--device", device),
                *("--sharers", str(workers)),
            ),
            workers=workers,
            deep=environ.get("KERNELHUB_DEEP", "") not in ("", "0"),
        )


def _folder_name(device: str, environ: Mapping[str, str]) -> str:
    """One folder per device of this machine, also where each process sees its own as cuda:0."""
    visible = environ.get("CUDA_VISIBLE_DEVICES", "") if device.startswith("cuda") else ""
    name = f"{device}-{visible}" if visible else device
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def verifier_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the verifier inherits: no token, no broker, nothing that it does not need."""
    return {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }
