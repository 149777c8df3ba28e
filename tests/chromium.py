"""Finds Chromium, or has apt install it when we may."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The sandbox flag: Chromium's own sandbox refuses root. The rest: no calls home.
CHROMIUM_FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
APT_TIMEOUT_S: Final = 420


def chromium_find_or_install() -> Path | str:
    """The executable, or the reason why there is none. KERNELHUB_CHROMIUM overrides the search."""
    return chromium_find() or _install()


def chromium_find() -> Path | None:
    names = (os.environ.get("KERNELHUB_CHROMIUM", ""), *NAMES)
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    return Path(found) if found else None


def _install() -> Path | str:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "Chromium is not installed. As root: apt-get install chromium"
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
    ):
        if (problem := _apt(command)) is not None:
            return f"`{' '.join(command)}` failed: {problem}"
    return chromium_find() or "apt installed chromium, and it is not on PATH"


def _apt(command: list[str]) -> str | None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=APT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {APT_TIMEOUT_S} s"
    return None if done.returncode == 0 else done.stderr.strip()[-300:]
