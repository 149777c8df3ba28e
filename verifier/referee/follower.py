"""What follows a reference's operations from below."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Follower(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode whose own code nobody compiles. Torch would import its compiler (more than a
    second) to be told so, and ask at each operation."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
