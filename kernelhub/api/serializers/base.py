"""What the serializers share: nothing unknown, nothing coerced, text that is text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from kernelhub.api.problems import Kind, ProblemError, query_faults

MAX_PAGE: Final = 200
BIGINT_MAX: Final = 2**63 - 1


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know: a typo must not silently mean the default."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                known = ", ".join(sorted(self.fields))
                raise ValidationError(
                    {name: [f"There is no such field; known are {known}."] for name in unknown}
                )
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """A JSON string; a number is not quietly turned into one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeField(serializers.IntegerField):
    """A JSON integer; '12' and 12.0 are none."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class PageQuery(StrictSerializer):
    """The parameters that every list has."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_PAGE, default=50)
    cursor = serializers.CharField(default="", max_length=500)


def read_body(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """The body as the serializer's values; ValidationError points at each wrong field."""
    reader = serializer(data=request.data)
    reader.is_valid(raise_exception=True)
    return dict(reader.validated_data)


def read_query(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """The query string as the serializer's values; ProblemError names each wrong parameter."""
    reader = serializer(data=request.query_params.dict())
    if not reader.is_valid():
        _refuse_query(reader.errors)
    return dict(reader.validated_data)


def _refuse_query(errors: Mapping[str, Any]) -> NoReturn:
    faults = tuple(query_faults(errors))
    names = ", ".join(sorted({fault.parameter for fault in faults}))
    raise ProblemError(Kind.INVALID, f"Wrong query parameters: {names}.", *faults)
