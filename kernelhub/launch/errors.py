"""What stops a launch."""

from __future__ import annotations


class LaunchError(Exception):
    """The launch cannot go on. The text is one line that says what to do; no traceback is shown."""
