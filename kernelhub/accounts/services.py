"""Writing tokens and roles. A page, an API call and a command that do the same thing call these."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import Role, Scope, role_scopes, user_role
from kernelhub.core.models import Node

TOKEN_FORMAT: Final = re.compile(r"kh_(?P<prefix>[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43})")
SECRET_NBYTES: Final = 32
LAST_USED_STEP: Final = timedelta(minutes=1)
"""How coarse last_used_at is, so that a heartbeat does not write a row each time."""

CURATED_MODELS: Final = ("suite", "task", "workload", "kernel", "campaign")


class TokenError(ValueError):
    """A token cannot be made, changed or used; ``field`` names the offending argument, or ''."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A fresh token with its full text: the only moment at which the text exists."""

    token: ApiToken
    text: str


def token_create(
    *,
    user: User,
    label: str,
    scopes: Iterable[Scope],
    expires_at: datetime | None = None,
) -> IssuedToken:
    """A token for a person. TokenError: scopes beyond the user's role, or a date in the past."""
    wanted = frozenset(scopes)
    refused = wanted - role_scopes(user_role(user))
    if not wanted:
        raise TokenError("Name at least one scope.", field="scopes")
    if refused:
        names = ", ".join(sorted(refused))
        raise TokenError(f"Your role does not allow the scope {names}.", field="scopes")
    if expires_at is not None and expires_at <= timezone.now():
        raise TokenError("The expiry date lies in the past.", field="expires_at")
    return _issue(ApiToken(user=user, label=label, scopes=sorted(wanted), expires_at=expires_at))


def node_token_create(*, node: Node, label: str = "node agent") -> IssuedToken:
    """A token for a machine: it reaches the node API and nothing else."""
    return _issue(ApiToken(node=node, label=label, scopes=[Scope.NODE.value]))


def token_revoke(*, token: ApiToken) -> bool:
    """Make the token useless for ever; False when it already was revoked."""
    rows = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    return rows == 1


@transaction.atomic
def token_rotate(*, token: ApiToken) -> IssuedToken:
    """Replace a live token by one with the same holder, label, scopes and lifetime.

    TokenError when the token is revoked or expired: a dead token is no ground for a new one.
    """
    now = timezone.now()
    if token.is_expired(now) or not token_revoke(token=token):
        raise TokenError("This token is revoked or expired; create a new one.")
    lifetime = token.expires_at - token.created_at if token.expires_at else None
    return _issue(
        ApiToken(
            user=token.user,
            node=token.node,
            label=token.label,
            scopes=token.scopes,
            expires_at=now + lifetime if lifetime else None,
        )
    )


def token_authenticate(*, text: str) -> ApiToken:
    """The live token that the text stands for, its use noted.

    TokenError says why not. Only a caller with the right secret learns that a token is revoked or
    expired; to others every unknown token looks the same.
    """
    match = TOKEN_FORMAT.fullmatch(text)
    if match is None:
        raise TokenError("This is not a kernelhub token: one reads kh_<prefix>_<secret>.")
    token = ApiToken.objects.select_related("user", "node").filter(prefix=match["prefix"]).first()
    if token is None or not hmac.compare_digest(token.sha256, _digest(match["secret"])):
        raise TokenError("Unknown token.")
    now = timezone.now()
    if token.revoked_at is not None:
        raise TokenError("This token was revoked.")
    if token.is_expired(now):
        raise TokenError("This token has expired.")
    if token.user is not None and not token.user.is_active:
        raise TokenError("The account of this token is disabled.")
    _note_use(token, now)
    return token


def user_role_set(*, user: User, role: Role) -> None:
    """Give the user exactly this role; administrators and curators may enter the admin."""
    user.groups.remove(*Group.objects.filter(name__in=list(Role)))
    user.groups.add(Group.objects.get_or_create(name=role.value)[0])
    user.is_staff = role.covers(Role.CURATOR)
    user.save(update_fields=["is_staff"])


def roles_sync() -> None:
    """Create the four groups and give each its admin permissions; safe to repeat."""
    wanted = {
        Role.VIEWER: Q(pk__in=[]),
        Role.SUBMITTER: Q(pk__in=[]),
        Role.CURATOR: _core_permissions("view")
        | Q(content_type__app_label="core", codename__in=_curated_codenames()),
        Role.ADMINISTRATOR: Q(content_type__app_label__in=["core", "accounts", "auth"]),
    }
    for role, condition in wanted.items():
        group, _ = Group.objects.get_or_create(name=role.value)
        group.permissions.set(Permission.objects.filter(condition))


def _core_permissions(action: str) -> Q:
    return Q(content_type__app_label="core", codename__startswith=f"{action}_")


def _curated_codenames() -> list[str]:
    return [f"change_{model}" for model in CURATED_MODELS]


def _issue(token: ApiToken) -> IssuedToken:
    secret = secrets.token_urlsafe(SECRET_NBYTES)
    token.prefix = secrets.token_hex(6)
    token.sha256 = _digest(secret)
    token.save(force_insert=True)
    return IssuedToken(token=token, text=f"kh_{token.prefix}_{secret}")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def _note_use(token: ApiToken, now: datetime) -> None:
    if token.last_used_at is None or token.last_used_at < now - LAST_USED_STEP:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
