"""Runs, their events and verdicts."""

from __future__ import annotations

import keyword
from typing import Any, ClassVar, Final

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from kernelhub.api.problems import Fault, Kind, ProblemError
from kernelhub.api.serializers.base import PageQuery, StrictSerializer, TextField, WholeField
from kernelhub.api.serializers.catalogue import KernelSerializer
from kernelhub.core.choices import OUTCOME_CHOICES, AuthorKind, RunStatus
from kernelhub.core.models import Event, GateResult, Run, Verdict
from kernelhub.core.services.kernel import SOURCE_NBYTES
from verifier.wording import in_one_line

SEED_MAX: Final = 2**53 - 1
"""A larger number would not survive every JSON reader."""

WAIT_MAX_S: Final = 25
"""Longest wait of one long poll: below the idle limits of common proxies."""

REASON_LENGTH: Final = 1000
"""Characters of a reason in a summary."""

SUBMITTER_KINDS: Final = (AuthorKind.PERSON.value, AuthorKind.AGENT.value)
TASK_PATH: Final = RegexValidator(
    r"^[-a-zA-Z0-9_]+/[-a-zA-Z0-9_]+\Z", "Write the task as suite/task, like fuzzoracle/softmax."
)


class SourceField(TextField):
    """Python source: text that a file can hold, and not more than a kernel needs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        text = data if isinstance(data, str) else super().to_internal_value(data)
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            raise ValidationError(f"Source must be text, but line {line} holds a NUL byte.")
        _refuse_large(_utf8(text))
        if not text.strip():
            raise ValidationError("The source is empty.")
        return text


def _utf8(text: str) -> bytes:
    """The text's bytes. Bytes that were no UTF-8 came through the parser as lone surrogates."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text[: error.start].count("\n") + 1
        raise ValidationError(
            f"Source must be text, but line {line} holds bytes that are not UTF-8."
        ) from error


def _refuse_large(content: bytes) -> None:
    if len(content) > SOURCE_NBYTES:
        detail = (
            f"The source has {len(content):,} bytes; "
            f"a kernel may have at most {SOURCE_NBYTES:,} bytes (1 MiB)."
        )
        raise ProblemError(Kind.TOO_LARGE, detail, Fault(detail=detail, pointer="#/source"))


def _python_name(value: str) -> None:
    if not value.isidentifier() or keyword.iskeyword(value):
        raise ValidationError(f"{value!r} is no Python name; the entry is a function such as run.")


class RunRequest(StrictSerializer):
    task = TextField(validators=[TASK_PATH], max_length=200, help_text="such as fuzzoracle/softmax")
    source = SourceField(  # type: ignore[assignment]  # a field, not an option
        help_text=f"the kernel's Python source, at most {SOURCE_NBYTES:,} bytes of UTF-8"
    )
    entry = TextField(default="run", max_length=120, validators=[_python_name])
    seed = WholeField(required=False, min_value=0, max_value=SEED_MAX, help_text="default: drawn")
    queue = TextField(
        default="", allow_blank=True, max_length=60, help_text="device queue; default: any node"
    )
    label = TextField(  # type: ignore[assignment]  # a field, not an option
        default="", allow_blank=True, max_length=120, help_text="a name for the kernel"
    )
    author_name = TextField(default="", allow_blank=True, max_length=120)
    author_kind = serializers.ChoiceField(choices=SUBMITTER_KINDS, default=SUBMITTER_KINDS[0])
    notes = TextField(default="", allow_blank=True, max_length=10_000)


class GateSummarySerializer(serializers.ModelSerializer[GateResult]):
    reason = serializers.SerializerMethodField(
        help_text="in one line; the verdict document has the whole of it"
    )

    class Meta:
        model = GateResult
        fields: ClassVar = ["gate", "status", "hard", "summary", "reason"]

    def get_reason(self, result: GateResult) -> str:
        return in_one_line(result.reason, REASON_LENGTH)


class VerdictSummarySerializer(serializers.ModelSerializer[Verdict]):
    gates = GateSummarySerializer(many=True)

    class Meta:
        model = Verdict
        fields: ClassVar = [
            "outcome",
            "illusion",
            "hard",
            "loose_accepted",
            "verifier_version",
            "gate_set",
            "duration_ms",
            "gates",
        ]


class RunErrorSerializer(serializers.Serializer[Any]):
    """What of our machinery broke; it says nothing about the kernel."""

    kind = serializers.CharField()
    message = serializers.CharField()


class RunSerializer(serializers.ModelSerializer[Run]):
    task = serializers.CharField(source="task.path")
    kernel = KernelSerializer()
    outcome = serializers.ChoiceField(
        choices=OUTCOME_CHOICES, allow_null=True, source="verdict.outcome", default=None
    )
    illusion = serializers.BooleanField(allow_null=True, source="verdict.illusion", default=None)
    queue = serializers.CharField(source="requested_queue")
    node = serializers.CharField(allow_null=True, source="node.name", default=None)
    campaign = serializers.CharField(allow_null=True, source="campaign.slug", default=None)
    submitted_by = serializers.CharField(
        allow_null=True, source="created_by.username", default=None
    )
    error = serializers.SerializerMethodField()
    page = serializers.CharField(source="get_absolute_url", help_text="its page in the browser")

    class Meta:
        model = Run
        fields: ClassVar = [
            "id",
            "task",
            "kernel",
            "status",
            "outcome",
            "illusion",
            "error",
            "seed",
            "queue",
            "node",
            "campaign",
            "submitted_by",
            "attempt",
            "last_seq",
            "created_at",
            "started_at",
            "finished_at",
            "page",
        ]

    @extend_schema_field(RunErrorSerializer(allow_null=True))
    def get_error(self, run: Run) -> dict[str, str] | None:
        if run.status != RunStatus.ERRORED:
            return None
        return {"kind": run.error_kind, "message": run.error_message}


class RunDetailSerializer(RunSerializer):
    verdict = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields: ClassVar = [*RunSerializer.Meta.fields, "verdict"]

    @extend_schema_field(VerdictSummarySerializer(allow_null=True))
    def get_verdict(self, run: Run) -> dict[str, Any] | None:
        if not hasattr(run, "verdict"):
            return None
        return dict(VerdictSummarySerializer(run.verdict).data)


class SubmittedRunSerializer(RunDetailSerializer):
    """The answer to a submission: the run, and what of the request it did not take over."""

    notice = serializers.CharField(
        help_text="'' unless the task knows this source already: its first label, author and notes "
        "stay, and this says by which label"
    )

    class Meta(RunDetailSerializer.Meta):
        fields: ClassVar = [*RunDetailSerializer.Meta.fields, "notice"]


class RunListSerializer(serializers.Serializer[Any]):
    results = RunSerializer(many=True)
    next = serializers.URLField(allow_null=True)


class RunQuery(PageQuery):
    status = serializers.ChoiceField(choices=RunStatus.choices, required=False)
    outcome = serializers.ChoiceField(choices=OUTCOME_CHOICES, required=False)
    illusion = serializers.BooleanField(required=False, allow_null=True, default=None)
    suite = serializers.SlugField(required=False)
    task = serializers.CharField(required=False, validators=[TASK_PATH], max_length=200)
    kernel = serializers.UUIDField(required=False)
    campaign = serializers.UUIDField(required=False)
    node = serializers.CharField(required=False, max_length=120)
    author_kind = serializers.ChoiceField(choices=AuthorKind.choices, required=False)
    text = serializers.CharField(
        required=False, max_length=200, help_text="looked for in labels, authors, tasks, hashes"
    )
    q = serializers.CharField(
        required=False, max_length=200, help_text="the same as text, by the name that pages use"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        words = {attrs[name] for name in ("text", "q") if name in attrs}
        if len(words) > 1:
            raise ValidationError({"q": ["q and text are one filter; give one of them."]})
        return {**attrs, "text": words.pop()} if words else attrs


class EventsQuery(StrictSerializer):
    after = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)
    wait = serializers.FloatField(
        min_value=0, max_value=WAIT_MAX_S, default=0, help_text="seconds to wait for a new event"
    )
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=500)


class EventSerializer(serializers.ModelSerializer[Event]):
    payload = serializers.DictField()

    class Meta:
        model = Event
        fields: ClassVar = ["seq", "attempt", "kind", "payload", "created_at"]


class EventPageSerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=RunStatus.choices)
    last_seq = serializers.IntegerField(help_text="number of the run's latest event")
    done = serializers.BooleanField(help_text="the run has ended and these are its last events")
    events = EventSerializer(many=True)
