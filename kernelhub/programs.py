"""Where a person finds our programs; every command that we print or show begins here."""

from __future__ import annotations

from typing import Final

BIN: Final = ".venv/bin"
"""Where the programs lie, seen from the repository's root."""
