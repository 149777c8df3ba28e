"""In the host: what an honest kernel asks for and this device does not have."""


class UnsupportedError(NotImplementedError):
    """The kernel needs something that does not exist here: no fault of its own."""
