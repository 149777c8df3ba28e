"""In the host: what is said of a kernel's launches instead of the odd errors that they end in."""


class UnsupportedError(NotImplementedError):
    """The kernel needs something that does not exist here: no fault of its own."""


class RefusedError(Exception):
    """Triton's compiler takes the kernel for no target."""
