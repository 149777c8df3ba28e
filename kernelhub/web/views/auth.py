"""Sign-in and sign-out: Django's own, in our pages and under our policy."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponseBase

from kernelhub.accounts.permissions import public_scopes
from kernelhub.core.policy import POLICY


class SignIn(LoginView):
    template_name = "web/login.html"
    redirect_authenticated_user = False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, public=bool(public_scopes()))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        response["Content-Security-Policy"] = POLICY
        return response


class SignOut(LogoutView):
    next_page = "/"
