"""Sign-in and sign-out: Django's own, in our pages."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView

from kernelhub.accounts.permissions import public_scopes


class SignIn(LoginView):
    template_name = "web/login.html"
    redirect_authenticated_user = False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, public=bool(public_scopes()))


class SignOut(LogoutView):
    next_page = "/"
