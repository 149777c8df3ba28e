"""API tokens, which show their text once and never again."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.roles import USER_SCOPES, Role, Scope
from kernelhub.api.serializers.base import StrictSerializer, TextField

SCOPE_CHOICES = sorted(scope.value for scope in USER_SCOPES)


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    prefix = serializers.SerializerMethodField(help_text="how the token's text starts")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPE_CHOICES), read_only=True
    )

    class Meta:
        model = ApiToken
        fields: ClassVar = [
            "id",
            "label",
            "prefix",
            "scopes",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ]

    def get_prefix(self, token: ApiToken) -> str:
        return f"kh_{token.prefix}"


class IssuedTokenSerializer(TokenSerializer):
    """A fresh token with its text, in the one response that has it."""

    token = serializers.CharField(help_text="the bearer token; shown only now")

    class Meta(TokenSerializer.Meta):
        fields: ClassVar = [*TokenSerializer.Meta.fields, "token"]


class TokenListSerializer(serializers.Serializer[Any]):
    results = TokenSerializer(many=True)


class TokenRequest(StrictSerializer):
    label = TextField(max_length=80, help_text="its purpose")  # type: ignore[assignment]  # a field
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPE_CHOICES),
        default=[Scope.RUNS_READ.value, Scope.RUNS_WRITE.value],
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class MeSerializer(serializers.Serializer[Any]):
    """Who the hub thinks that is calling."""

    user = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(choices=[role.value for role in Role], allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField())
