"""Closed sets of words that rows carry. The words are those of the design's first section."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import TextChoices

from verifier import records


def choices_of(kind: type[StrEnum]) -> list[tuple[str, str]]:
    """A verifier enum as Django choices: the word is its own label."""
    return [(member.value, member.value) for member in kind]


GATE_CHOICES = choices_of(records.GateId)
GATE_STATUS_CHOICES = choices_of(records.GateStatus)
OUTCOME_CHOICES = choices_of(records.Outcome)
LANGUAGE_CHOICES = choices_of(records.Language)


class TaskStatus(TextChoices):
    DRAFT = "draft"
    PUBLISHED = "published"
    RETIRED = "retired"


class AuthorKind(TextChoices):
    PERSON = "person"
    AGENT = "agent"
    IMPORT = "import"
    CONTROL = "control"


class Expectation(TextChoices):
    """What a corpus says of its own kernel; '' for everybody else's."""

    CONTROL = "control"
    BUG = "bug"
    ILLUSION = "illusion"


class RunStatus(TextChoices):
    """Errored means that our machinery broke; a kernel found wrong is a finished run."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    ERRORED = "errored"
    CANCELLED = "cancelled"


ACTIVE = frozenset({RunStatus.QUEUED, RunStatus.RUNNING})
ENDED = frozenset({RunStatus.FINISHED, RunStatus.ERRORED, RunStatus.CANCELLED})


class ErrorKind(TextChoices):
    """Why a run errored. None of them says anything about the kernel."""

    LOST = "lost"
    """Its nodes stopped answering too often."""
    INFRASTRUCTURE = "infrastructure"
    """Its nodes answered, but their verifier broke too often."""
    TASK = "task"
    """The task itself cannot be judged; another attempt would end the same way."""


class NodeStatus(TextChoices):
    ONLINE = "online"
    DRAINING = "draining"
    OFFLINE = "offline"
    SICK = "sick"
    """It took itself out of service: its device cannot be trusted. It is given no runs."""


class VerdictSource(TextChoices):
    """Where a verdict was reached; rankings never mix the two silently."""

    FLEET = "fleet"
    REPORTED = "reported"
