"""Pages by key: the next page starts after the last row seen, whatever arrived meanwhile."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request

from kernelhub.api.problems import Fault, Kind, ProblemError

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursor of the page after them; '' on the last page."""

    rows: list[Row]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class Keyset:
    """An order over unique keys, all ascending or all descending."""

    fields: tuple[str, ...]
    descending: bool = False

    def page(self, rows: QuerySet[Row], *, cursor: str, limit: int) -> Page[Row]:
        """At most ``limit`` rows after the cursor. ProblemError for a cursor that is not ours."""
        if cursor:
            rows = self._after(rows, decode_cursor(cursor, len(self.fields)))
        sign = "-" if self.descending else ""
        found = list(rows.order_by(*[f"{sign}{field}" for field in self.fields])[: limit + 1])
        more = len(found) > limit
        return Page(found[:limit], self._cursor(found[limit - 1]) if more else "")

    def _after(self, rows: QuerySet[Row], key: Sequence[Any]) -> QuerySet[Row]:
        try:
            return rows.filter(self._beyond(key))
        except (ValidationError, ValueError, TypeError) as error:
            raise bad_cursor() from error

    def _beyond(self, key: Sequence[Any]) -> Q:
        """(a, b) > (x, y), spelled as a > x or (a = x and b > y)."""
        word = "lt" if self.descending else "gt"
        condition = Q(pk__in=[])
        for place, (field, value) in enumerate(zip(self.fields, key, strict=True)):
            same = dict(zip(self.fields[:place], key, strict=False))
            condition |= Q(**same, **{f"{field}__{word}": value})
        # Implied by the rest, but lets the database start in the middle of the index.
        return Q(**{f"{self.fields[0]}__{word}e": key[0]}) & condition

    def _cursor(self, row: Model) -> str:
        return encode_cursor([_value(row, field) for field in self.fields])


def next_url(request: Request, cursor: str) -> str | None:
    """This request's address with the next cursor in it; None on the last page."""
    if not cursor:
        return None
    query = request.query_params.copy()
    query["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")


def encode_cursor(key: Sequence[Any]) -> str:
    text = json.dumps([_plain(value) for value in key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, length: int) -> list[Any]:
    """The key that the cursor holds, as JSON scalars."""
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError as error:
        raise bad_cursor() from error
    scalars = isinstance(key, list) and all(isinstance(value, str) for value in key)
    if not scalars or len(key) != length or any("\x00" in value for value in key):
        raise bad_cursor()
    return list(key)


def bad_cursor() -> ProblemError:
    fault = Fault(parameter="cursor", detail="Not a cursor that this list gave out.")
    return ProblemError(Kind.INVALID, "The cursor is not valid; start without one.", fault)


def _value(row: Model, field: str) -> Any:
    value: Any = row
    for part in field.split("__"):
        value = getattr(value, part)
    return value


def _plain(value: datetime | UUID | str) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
