"""Why a service refused. The API turns each into a problem document, a command into a line."""

from __future__ import annotations


class ServiceError(Exception):
    """A request that cannot be carried out; the message says what to do."""


class InvalidKernelError(ServiceError):
    """The source cannot be stored as a kernel at all."""


class IdempotencyConflictError(ServiceError):
    """The idempotency key was used before, for something else."""


class FencedError(ServiceError):
    """The run no longer belongs to this attempt: stop, and write nothing more."""


class VerdictMismatchError(ServiceError):
    """The verdict is about another task, kernel or seed than the run."""


class BrokenVerdictError(ServiceError):
    """The verdict holds a gate that broke: no judgement, and no verdict to store."""


class EventGapError(ServiceError):
    """A batch of events starts after the next expected one; ``expected`` says where to resume."""

    def __init__(self, expected: int) -> None:
        super().__init__(f"events are missing: resume from {expected}")
        self.expected = expected


class TooManyEventsError(ServiceError):
    """The run has posted as many events as one run may."""
