"""What the views share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django.contrib.auth.models import User
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.request import Request
from rest_framework.views import APIView

from kernelhub.accounts.authentication import NodePrincipal
from kernelhub.accounts.roles import Scope


class ApiView(APIView):
    """A view of API v1. ``scopes`` names what each method needs; without it all is denied."""

    scopes: ClassVar[Mapping[str, Scope]] = {}


def request_user(request: Request) -> User:
    """The person who is calling, by session or by token; nodes are no persons."""
    if isinstance(request.user, NodePrincipal):
        raise PermissionDenied("A node token cannot do this.")
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
