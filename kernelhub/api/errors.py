"""Turns every exception below a view of the API into a problem document."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from kernelhub.api.problems import (
    MEDIA_TYPE,
    Fault,
    Kind,
    ProblemError,
    body_faults,
    problem_document,
)

logger = logging.getLogger(__name__)

AGAIN: Final = "Try again in a few seconds; with an Idempotency-Key nothing is done twice."

KINDS: Final[tuple[tuple[type[Exception], Kind], ...]] = (
    (exceptions.ParseError, Kind.MALFORMED),
    (exceptions.NotAuthenticated, Kind.UNAUTHENTICATED),
    (exceptions.AuthenticationFailed, Kind.UNAUTHENTICATED),
    (exceptions.PermissionDenied, Kind.FORBIDDEN),
    (DjangoPermissionDenied, Kind.FORBIDDEN),
    (exceptions.NotFound, Kind.NOT_FOUND),
    (Http404, Kind.NOT_FOUND),
    (exceptions.MethodNotAllowed, Kind.METHOD),
    (exceptions.NotAcceptable, Kind.NOT_ACCEPTABLE),
    (exceptions.UnsupportedMediaType, Kind.MEDIA),
    (exceptions.Throttled, Kind.THROTTLED),
)


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """REST framework's hook: one problem document for any exception, also for our own bugs."""
    set_rollback()
    kind, detail, faults = _describe(error)
    if kind is Kind.INTERNAL:
        _report(error, context)
    if kind is Kind.UNAVAILABLE:
        logger.warning("the database does not answer: %s", str(error).strip())
    return Response(
        problem_document(kind, detail, faults),
        status=kind.status,
        headers=_headers(error),
        content_type=MEDIA_TYPE,
    )


def _describe(error: Exception) -> tuple[Kind, str, tuple[Fault, ...]]:
    if isinstance(error, ProblemError):
        return error.kind, str(error.detail), error.faults
    if isinstance(error, exceptions.ValidationError):
        faults = tuple(body_faults(error.detail))
        return Kind.INVALID, _summary(faults), faults
    for kind_of_error, kind in KINDS:
        if isinstance(error, kind_of_error):
            return kind, _text(error, kind), ()
    if isinstance(error, (OperationalError, InterfaceError)):
        return Kind.UNAVAILABLE, AGAIN, ()
    return Kind.INTERNAL, "This is a fault of the hub, not of your request; it was logged.", ()


def _text(error: Exception, kind: Kind) -> str:
    """The exception's own words; Django's 404 texts name classes and queries, so not those."""
    if isinstance(error, exceptions.APIException) and not isinstance(error.detail, (list, dict)):
        return str(error.detail)
    return f"{kind.title}."


def _summary(faults: tuple[Fault, ...]) -> str:
    places = sorted({fault.pointer for fault in faults})
    return f"{len(faults)} error(s), at {', '.join(places)}."


def _headers(error: Exception) -> dict[str, str]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = str(challenge)
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = f"{wait:.0f}"
    if isinstance(error, (OperationalError, InterfaceError)):
        headers["Retry-After"] = "5"
    return headers


def _report(error: Exception, context: dict[str, Any]) -> None:
    """Log it and tell Django, as if the view had let the exception through."""
    request = getattr(context.get("request"), "_request", None)
    path = getattr(request, "path", "?")
    logger.error("unhandled exception at %s", path, exc_info=error)
    got_request_exception.send(sender=type(context.get("view")), request=request)
