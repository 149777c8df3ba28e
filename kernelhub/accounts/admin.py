"""Tokens and people in the admin. A token is made here and shown once, in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import USER_SCOPES, Scope, role_scopes, user_role
from kernelhub.accounts.services import (
    IssuedToken,
    node_token_create,
    token_create,
    token_revoke,
)
from kernelhub.core.theme import ModelAdmin

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ApiToken]
    _UserAdmin = StockUserAdmin[User]
else:
    _ModelForm = forms.ModelForm
    _UserAdmin = StockUserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(_UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(StockGroupAdmin, ModelAdmin):
    pass


class TokenForm(_ModelForm):
    """One holder; scopes only for people, because a node token has exactly one."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in sorted(USER_SCOPES)],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    class Meta:
        model = ApiToken
        fields = ("label", "user", "node", "scopes", "expires_at")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        user, node = values.get("user"), values.get("node")
        if (user is None) == (node is None):
            raise ValidationError("Choose a user or a node, and not both.")
        if user is not None:
            _check_scopes(user, values.get("scopes", []))
        elif values.get("expires_at"):
            self.add_error("expires_at", "Node tokens do not expire; revoke them instead.")
        # The database would judge the scopes below; for a node the service fills them in.
        self.instance.scopes = values.get("scopes") if user else [Scope.NODE.value]
        return values


def _check_scopes(user: User, names: list[str]) -> None:
    refused = {Scope(name) for name in names} - role_scopes(user_role(user))
    if not names or refused:
        words = ", ".join(sorted(refused)) or "at least one scope"
        raise ValidationError({"scopes": f"Not for this user's role: {words}."})


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    form = TokenForm
    list_display = ("__str__", "holder", "scopes", "created_at", "last_used_at", "revoked_at")
    list_filter = ("revoked_at",)
    list_select_related = ("user", "node")
    search_fields = ("label", "prefix")
    actions = ("revoke",)
    fields: ClassVar = ["label", "user", "node", "scopes", "expires_at"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apitoken")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        issued = _issue(obj)
        # The log entry and the redirect are about the row that the service made.
        obj.pk = issued.token.pk
        messages.success(request, f"Copy this token now, it is not shown again: {issued.text}")

    @admin.action(description="Revoke for ever", permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        revoked = sum(token_revoke(token=token) for token in tokens)
        messages.success(request, f"{revoked} revoked.")


def _issue(token: ApiToken) -> IssuedToken:
    if token.node is not None:
        return node_token_create(node=token.node, label=token.label)
    assert token.user is not None  # noqa: S101 - the form asked for one holder
    scopes = [Scope(name) for name in token.scopes]
    return token_create(
        user=token.user, label=token.label, scopes=scopes, expires_at=token.expires_at
    )
