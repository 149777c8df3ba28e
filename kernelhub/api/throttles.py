"""How often one caller may call. Rates stand in kernelhub.api.conf; nodes are never slowed down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import AnonRateThrottle, UserRateThrottle

from kernelhub.accounts.authentication import NodePrincipal

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView


class AnonymousThrottle(AnonRateThrottle):
    """Everybody who is not signed in, by address."""

    scope = "anonymous"


class PersonThrottle(UserRateThrottle):
    """Each signed-in person, over all of their tokens."""

    scope = "person"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        if isinstance(request.user, NodePrincipal) or not request.user.is_authenticated:
            return None
        return super().get_cache_key(request, view)


class WriteThrottle(PersonThrottle):
    """Writing, which makes work for the fleet, is rarer than reading."""

    scope = "write"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        if request.method in SAFE_METHODS:
            return None
        return super().get_cache_key(request, view)
