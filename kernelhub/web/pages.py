"""One way to answer with a page: our template, and headers that let nothing foreign in."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

# Plotly sets style attributes and one style element as it draws; scripts stay ours alone.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


def page(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """The rendered page with our content security policy."""
    response = render(request, template, context, status=status)
    response["Content-Security-Policy"] = POLICY
    response["Referrer-Policy"] = "same-origin"
    return response
