"""Who may do what: four roles, each a Django group, and the scopes that a role can hand out."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import AnonymousUser

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Role(StrEnum):
    """From the least to the most powerful; a role may do all that the ones above it may.

    VIEWER reads. SUBMITTER also submits kernels and cancels runs of their own. CURATOR also cares
    for tasks and campaigns and cancels any run. ADMINISTRATOR also cares for people, nodes and
    everybody's tokens.
    """

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    CURATOR = "curator"
    ADMINISTRATOR = "administrator"

    def covers(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


class Scope(StrEnum):
    """What one API token may do. A token never exceeds the role of its user."""

    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    TOKENS_WRITE = "tokens:write"
    NODE = "node"


ROLE_NEEDED: Final = {
    Scope.RUNS_READ: Role.VIEWER,
    Scope.RUNS_WRITE: Role.SUBMITTER,
    Scope.TOKENS_WRITE: Role.VIEWER,
}
"""The least role for each scope. NODE is missing on purpose: it belongs to machines alone."""

USER_SCOPES: Final = frozenset(ROLE_NEEDED)


def user_role(user: User | AnonymousUser) -> Role | None:
    """The most powerful role among the user's groups; None for anonymous and group-less users."""
    if isinstance(user, AnonymousUser) or not user.is_active:
        return None
    if user.is_superuser:
        return Role.ADMINISTRATOR
    names = set(user.groups.values_list("name", flat=True))
    return next((role for role in reversed(Role) if role.value in names), None)


def role_scopes(role: Role | None) -> frozenset[Scope]:
    """Every scope that a person of this role may use."""
    if role is None:
        return frozenset()
    return frozenset(scope for scope, needed in ROLE_NEEDED.items() if role.covers(needed))
