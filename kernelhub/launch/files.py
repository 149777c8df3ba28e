"""Owner-only files: written whole or not at all, never readable by others in between."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import BinaryIO


def private_folder(path: Path) -> Path:
    """Creates the folder for the owner alone; an existing one keeps its permissions."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_private(path: Path, text: str) -> None:
    """Replaces the file's content in one step; mode 0600 from its first byte on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def read_or_create_secret(path: Path, *, nbytes: int = 24) -> str:
    """The secret stored at the path, made at random (hex) when there is none yet."""
    if not path.exists():
        write_private(path, secrets.token_hex(nbytes) + "\n")
    return path.read_text(encoding="utf-8").strip()


def open_private(path: Path) -> BinaryIO:
    """The file for appending; a new one is readable by the owner alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "ab")
