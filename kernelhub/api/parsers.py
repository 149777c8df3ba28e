"""Reading request bodies: JSON only, at most so large, and strict about what text is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, Final, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from kernelhub.api.problems import Kind, ProblemError
from kernelhub.core.services.kernel import SOURCE_NBYTES

MAX_BODY_NBYTES: Final = 8 * SOURCE_NBYTES
"""JSON may spell a character with six bytes: the largest source fits however it is escaped."""


class StrictJSONParser(BaseParser):
    """UTF-8 JSON. A byte that is no UTF-8 survives as a lone surrogate, which each text field
    refuses under its own name: the caller learns *where* the bytes are."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        request = (parser_context or {}).get("request")
        declared = request.META.get("CONTENT_LENGTH") if request is not None else None
        if declared and int(declared) > MAX_BODY_NBYTES:
            raise too_large()
        raw = stream.read(MAX_BODY_NBYTES + 1)
        if len(raw) > MAX_BODY_NBYTES:
            raise too_large()
        return _loads(raw)


def too_large() -> ProblemError:
    return ProblemError(
        Kind.TOO_LARGE,
        f"The body exceeds {MAX_BODY_NBYTES:,} bytes; "
        f"a kernel source may have at most {SOURCE_NBYTES:,} bytes (1 MiB).",
    )


def _loads(raw: bytes) -> Any:
    text = raw.decode("utf-8-sig", "surrogateescape")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ParseError("The JSON is nested too deeply.") from error
    except ValueError as error:
        raise ParseError(f"The body is not JSON: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
