"""Problem documents (RFC 9457): what every error of the API looks like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

from rest_framework.exceptions import APIException

MEDIA_TYPE: Final = "application/problem+json"
NON_FIELD: Final = "non_field_errors"


class Kind(Enum):
    """Kinds of problem: a slug for programs, a title for people, the status of the response."""

    INVALID = ("invalid-request", "The request is not valid", HTTPStatus.BAD_REQUEST)
    MALFORMED = ("malformed-body", "The body cannot be read", HTTPStatus.BAD_REQUEST)
    UNAUTHENTICATED = ("unauthenticated", "Sign in first", HTTPStatus.UNAUTHORIZED)
    FORBIDDEN = ("forbidden", "You may not do this", HTTPStatus.FORBIDDEN)
    NOT_FOUND = ("not-found", "There is nothing here", HTTPStatus.NOT_FOUND)
    METHOD = ("method-not-allowed", "Not with this method", HTTPStatus.METHOD_NOT_ALLOWED)
    NOT_ACCEPTABLE = ("not-acceptable", "No such representation", HTTPStatus.NOT_ACCEPTABLE)
    CONFLICT = ("conflict", "The state does not allow this", HTTPStatus.CONFLICT)
    TOO_LARGE = ("too-large", "Too large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    MEDIA = ("unsupported-media-type", "Send JSON", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    KEY_REUSED = (
        "idempotency-key-reused",
        "This Idempotency-Key belongs to another request",
        HTTPStatus.UNPROCESSABLE_ENTITY,
    )
    THROTTLED = ("throttled", "Too many requests", HTTPStatus.TOO_MANY_REQUESTS)
    UNAVAILABLE = (
        "unavailable",
        "The hub cannot reach its database",
        HTTPStatus.SERVICE_UNAVAILABLE,
    )
    INTERNAL = ("internal-error", "The hub failed", HTTPStatus.INTERNAL_SERVER_ERROR)

    @property
    def slug(self) -> str:
        return self.value[0]

    @property
    def title(self) -> str:
        return self.value[1]

    @property
    def status(self) -> HTTPStatus:
        return self.value[2]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong: where in the body (a JSON pointer), the query or the headers, and what."""

    detail: str
    pointer: str = ""
    parameter: str = ""
    header: str = ""

    def document(self) -> dict[str, str]:
        places = {"pointer": self.pointer, "parameter": self.parameter, "header": self.header}
        return {name: place for name, place in places.items() if place} | {"detail": self.detail}


class ProblemError(APIException):
    """Raise anywhere below a view of the API to answer with this problem."""

    def __init__(self, kind: Kind, detail: str, *faults: Fault) -> None:
        super().__init__(detail)
        self.kind = kind
        self.faults = faults
        self.status_code = int(kind.status)


def problem_document(kind: Kind, detail: str, faults: Sequence[Fault] = ()) -> dict[str, Any]:
    """The JSON object that stands in the body."""
    document: dict[str, Any] = {
        "type": f"urn:kernelhub:problem:{kind.slug}",
        "title": kind.title,
        "status": int(kind.status),
        "detail": detail,
    }
    if faults:
        document["errors"] = [fault.document() for fault in faults]
    return document


def body_faults(detail: Any, pointer: str = "#") -> Iterator[Fault]:
    """The serializer's nested errors as a flat list of JSON pointers into the body."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            own = pointer if key == NON_FIELD else f"{pointer}/{_escape(str(key))}"
            yield from body_faults(value, own)
    elif isinstance(detail, (list, tuple)):
        for index, value in enumerate(detail):
            nested = isinstance(value, (Mapping, list, tuple))
            yield from body_faults(value, f"{pointer}/{index}" if nested else pointer)
    else:
        yield Fault(detail=str(detail), pointer=pointer)


def query_faults(detail: Mapping[str, Any]) -> Iterator[Fault]:
    """The errors of a query serializer, each by the name of its parameter."""
    for name, messages in detail.items():
        for fault in body_faults(messages):
            yield Fault(detail=fault.detail, parameter=name)


def _escape(token: str) -> str:
    """One reference token of a JSON pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")
