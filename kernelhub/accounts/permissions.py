"""What the caller may do. Deny by default: a view that names no scope is closed to everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.permissions import BasePermission

from kernelhub.accounts.authentication import NodePrincipal
from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import USER_SCOPES, Scope, role_scopes, user_role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.views import APIView


def public_scopes() -> frozenset[Scope]:
    """What everybody may do without signing in: read, unless KERNELHUB_PUBLIC_READ is off."""
    if getattr(settings, "KERNELHUB_PUBLIC_READ", True):
        return frozenset({Scope.RUNS_READ})
    return frozenset()


def granted_scopes(request: Request) -> frozenset[Scope]:
    """The caller's scopes: a token's, capped by the role that its user has at this moment."""
    user, token = request.user, request.auth
    if isinstance(user, NodePrincipal):
        return frozenset({Scope.NODE}) | public_scopes()
    allowed = role_scopes(user_role(user)) | public_scopes()
    if isinstance(token, ApiToken):
        return frozenset(Scope(name) for name in token.scopes) & allowed | public_scopes()
    return allowed


class ScopePermission(BasePermission):
    """Checks the scope that ``view.scopes`` names for the HTTP method (HEAD, OPTIONS: as GET)."""

    message = "Your role or token does not allow this."

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = str(request.method)
        if method not in view.allowed_methods:
            return True  # no handler runs: the framework answers 405, to everybody alike
        scopes: Mapping[str, Scope] = getattr(view, "scopes", {})
        needed = scopes.get("GET" if method in ("HEAD", "OPTIONS") else method)
        if needed is None:
            # OPTIONS on a view without GET describes what is there; it needs any of its scopes.
            return method == "OPTIONS" and bool(granted_scopes(request) & set(scopes.values()))
        self.message = f"This needs the scope {needed.value}."
        return needed in granted_scopes(request)


def assignable_scopes(request: Request) -> frozenset[Scope]:
    """Scopes that a caller may put into a new token: never more than the caller has."""
    return granted_scopes(request) & USER_SCOPES
