"""Who is calling the API: a bearer token of a user or of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.services import TokenError, token_authenticate

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from rest_framework.request import Request

    from kernelhub.core.models import Node

CHALLENGE: Final = 'Bearer realm="kernelhub"'


@dataclass(frozen=True, slots=True)
class NodePrincipal:
    """A node in the place of a user: ``request.user`` where a node token was presented."""

    node: Node

    is_authenticated: Final = True
    is_anonymous: Final = False
    is_active: Final = True
    is_staff: Final = False
    is_superuser: Final = False

    @property
    def pk(self) -> str:
        """Distinct from every user's key, so that throttles count nodes apart."""
        return f"node-{self.node.pk}"

    def __str__(self) -> str:
        return f"node {self.node.name}"


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer kh_...``; sets request.auth to the ApiToken.

    A request without a bearer header stays anonymous; one with a bad token is refused, also where
    reading is public, so that a typo never passes unnoticed.
    """

    def authenticate(self, request: Request) -> tuple[User | NodePrincipal, ApiToken] | None:
        kind, _, text = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        try:
            token = token_authenticate(text=text.strip())
        except TokenError as error:
            raise AuthenticationFailed(str(error)) from error
        if token.node is not None:
            return NodePrincipal(token.node), token
        assert token.user is not None  # noqa: S101 - a database constraint: one holder
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def request_node(request: Request) -> Node:
    """The node behind a node token. NotAuthenticated or PermissionDenied for anybody else."""
    if isinstance(request.user, NodePrincipal):
        return request.user.node
    if request.user.is_authenticated:
        raise PermissionDenied("This address is for node agents with a node token.")
    raise NotAuthenticated
