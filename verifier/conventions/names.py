"""Names that both sides know."""

from __future__ import annotations

from typing import Final

CONVENTIONS: Final = ("function", "kernelbench", "cuda", "flashinfer")
"""Every convention that the host knows."""

DEFAULT_ENTRY: Final = "run"
MODULE_ENTRY: Final = "ModelNew"
"""What stands for the default where kernels are modules."""

LIBRARY_CALLS: Final = "library_calls"
"""Among the details of a task that permits library calls; the host lets torch.compile compile."""
