"""The content security policy of every answer: nothing foreign, no inline script.

One middleware sends it, so that no page, error page or file can go without one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

HEADER: Final = "Content-Security-Policy"
ADMIN: Final = "admin"
"""The admin's name among the URLs."""


def _policy(script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {script}",
            # Plotly, Swagger and the admin's theme set style attributes and elements as they draw.
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "font-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


POLICY: Final = _policy("'self'")
# The admin's theme writes its behaviour into attributes, which Alpine compiles as it finds them.
# Scripts themselves are files of ours there too: none is inline, none comes from elsewhere.
ADMIN_POLICY: Final = _policy("'self' 'unsafe-eval'")

Answer = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def policy_middleware(get_response: Answer) -> Answer:
    """Sends the policy with every answer."""

    def under_policy(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        match = request.resolver_match
        in_admin = match is not None and match.app_name == ADMIN
        response.headers.setdefault(HEADER, ADMIN_POLICY if in_admin else POLICY)
        return response

    def answer(request: HttpRequest) -> HttpResponseBase:
        return under_policy(request, get_response(request))

    async def answer_async(request: HttpRequest) -> HttpResponseBase:
        response: Awaitable[HttpResponseBase] = get_response(request)
        return under_policy(request, await response)

    return answer_async if iscoroutinefunction(get_response) else answer
