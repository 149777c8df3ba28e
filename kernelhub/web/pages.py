"""One way to answer with a page: our template, and headers that let nothing foreign in."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from kernelhub.core.policy import POLICY


def page(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """The rendered page with our content security policy."""
    response = render(request, template, context, status=status)
    response["Content-Security-Policy"] = POLICY
    response["Referrer-Policy"] = "same-origin"
    return response
