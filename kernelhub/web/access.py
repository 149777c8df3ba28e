"""Who may see pages and who may cancel: the same roles and scopes as the API's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import quote

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from kernelhub.accounts.permissions import public_scopes
from kernelhub.accounts.roles import Role, Scope, role_scopes, user_role
from kernelhub.core.models import Run

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def may_read(user: User | AnonymousUser) -> bool:
    """Everybody where reading is public, else whoever has a role."""
    return Scope.RUNS_READ in role_scopes(user_role(user)) | public_scopes()


def may_cancel(user: User | AnonymousUser, run: Run) -> bool:
    """Curators any run, submitters their own; nobody a run that has ended."""
    role = user_role(user)
    if role is None or run.is_ended:
        return False
    own = run.created_by_id is not None and run.created_by_id == user.pk
    return role.covers(Role.CURATOR) or (own and role.covers(Role.SUBMITTER))


def readers_only(view: View[P]) -> View[P]:
    """Sends strangers to the sign-in page; a signed-in user without a role is told so."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if may_read(request.user):
            return view(request, *args, **kwargs)
        if request.user.is_authenticated:
            raise PermissionDenied("You have no role yet.")
        return redirect(f"/login/?next={quote(request.get_full_path())}")

    return guarded
