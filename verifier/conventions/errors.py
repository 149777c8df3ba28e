"""What conventions say when a kernel cannot be had as it stands, or not on this machine."""

from __future__ import annotations


class EntryError(Exception):
    """The source has no entry point of the wanted name and kind; the message says what to mend."""


class OutputError(Exception):
    """The kernel returned something that is no tensor or tuple of tensors."""


class UnsupportedError(NotImplementedError):
    """The kernel needs something that does not exist here: no fault of its own."""


class CompileError(Exception):
    """The source does not compile; the first error, with its line."""
