"""Submitting a kernel: one request, one run, however often the request is sent."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction
from rest_framework.exceptions import ValidationError

from kernelhub.api.models import Submission
from kernelhub.api.problems import Fault, Kind, ProblemError
from kernelhub.core.choices import TaskStatus
from kernelhub.core.models import Kernel, Node, Run, Task
from kernelhub.core.services import IdempotencyConflictError, kernel_register, run_enqueue

KEY_MAX: Final = 200
KEY_HEADER: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Submitted:
    """The run, and whether this request made it or an earlier one with the same key."""

    run: Run
    fresh: bool
    notice: str = ""


def run_submit(*, user: User, wanted: Mapping[str, Any], key: str | None, body: Any) -> Submitted:
    """Queue a run of the kernel in ``wanted``, the fields of RunRequest.

    With a key, a repeated body gives the first run back and another body is a ProblemError.
    ValidationError for an unknown task or queue.
    """
    digest = body_digest(body)
    if key is not None and (known := _run_of(user, key)) is not None:
        submitted = _replayed(known, digest)
    else:
        try:
            submitted = _store(user, wanted, key, digest)
        except IdempotencyConflictError as error:
            raise key_reused() from error
    return replace(submitted, notice=_notice(submitted.run.kernel, wanted["label"]))


def _notice(kernel: Kernel, label: str) -> str:
    """One content is one kernel, which keeps its first label: said where another was wanted."""
    if not label or label == kernel.label:
        return ""
    name = repr(kernel.label) if kernel.label else f"sha256 {kernel.sha256[:12]}, without a label"
    return f"This task knows this source already, as {name}; the label {label!r} was not kept."


def read_key(text: str | None) -> str | None:
    """The Idempotency-Key header; ProblemError unless it is 1 to 200 visible ASCII characters."""
    if text is None:
        return None
    if not text or len(text) > KEY_MAX or not all("!" <= character <= "~" for character in text):
        detail = f"{KEY_HEADER} must be 1 to {KEY_MAX} visible ASCII characters."
        raise ProblemError(Kind.INVALID, detail, Fault(detail=detail, header=KEY_HEADER))
    return text


def body_digest(body: Any) -> str:
    """sha256 of the parsed body: spacing and the order of keys do not make another request."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def key_reused() -> ProblemError:
    detail = "This key was used before, with another body. Use a new key for a new request."
    return ProblemError(Kind.KEY_REUSED, detail, Fault(detail=detail, header=KEY_HEADER))


def task_of(path: str) -> Task:
    """The task's revision that is open for runs; ValidationError suggests what was meant."""
    suite, _, slug = path.partition("/")
    tasks = Task.objects.filter(is_current=True).select_related("suite")
    task = tasks.filter(suite__slug=suite, slug=slug).first()
    if task is None or task.status == TaskStatus.DRAFT:
        raise ValidationError({"task": [f"There is no task {path}.{_hint(path)}"]})
    if task.status == TaskStatus.RETIRED:
        raise ValidationError({"task": [f"{path} is retired and takes no runs."]})
    return task


def check_queue(queue: str, *, field: tuple[str | int, ...] = ("queue",)) -> None:
    """A misspelt queue would wait for ever: one that no node ever served is refused."""
    known = set(Node.objects.exclude(queue="").values_list("queue", flat=True))
    if queue and queue not in known:
        names = ", ".join(sorted(known)) or "none yet"
        problem: Any = [f"No node serves {queue!r}; queues are: {names}."]
        for part in reversed(field):
            problem = {str(part): problem}
        raise ValidationError(problem)


@transaction.atomic
def _store(user: User, wanted: Mapping[str, Any], key: str | None, digest: str) -> Submitted:
    """Register the kernel and queue the run. Two requests with one key meet here at most once:
    the database lets one of them store the run, and the other finds it."""
    task = task_of(wanted["task"])
    check_queue(wanted["queue"])
    kernel = kernel_register(
        task=task,
        user=user,
        author_name=wanted["author_name"] or user.get_username(),
        **{name: wanted[name] for name in ("source", "entry", "author_kind", "label", "notes")},
    )
    run = run_enqueue(
        task=task,
        kernel=kernel,
        queue=wanted["queue"],
        seed=wanted.get("seed"),
        created_by=user,
        idempotency_key=key,
    )
    if key is None:
        return Submitted(run, fresh=True)
    submission, fresh = Submission.objects.get_or_create(run=run, defaults={"body_sha256": digest})
    if submission.body_sha256 != digest:
        raise key_reused()
    return Submitted(run, fresh)


def _run_of(user: User, key: str) -> Run | None:
    return Run.objects.filter(created_by=user, idempotency_key=key).first()


def _replayed(run: Run, digest: str) -> Submitted:
    if not Submission.objects.filter(run=run, body_sha256=digest).exists():
        raise key_reused()
    return Submitted(run, fresh=False)


def _hint(path: str) -> str:
    published = Task.objects.filter(is_current=True, status=TaskStatus.PUBLISHED)
    paths = [f"{suite}/{slug}" for suite, slug in published.values_list("suite__slug", "slug")]
    close = difflib.get_close_matches(path, paths, n=1)
    return f" Did you mean {close[0]}?" if close else " GET /api/v1/tasks lists them."
