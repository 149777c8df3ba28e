"""A person's own API tokens."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from kernelhub.accounts.authentication import NodePrincipal
from kernelhub.accounts.models import ApiToken
from kernelhub.accounts.permissions import assignable_scopes, granted_scopes
from kernelhub.accounts.roles import Scope, user_role
from kernelhub.accounts.services import (
    IssuedToken,
    TokenError,
    token_create,
    token_revoke,
    token_rotate,
)
from kernelhub.api.problems import Kind, ProblemError
from kernelhub.api.serializers.base import read_body
from kernelhub.api.serializers.tokens import (
    IssuedTokenSerializer,
    MeSerializer,
    TokenListSerializer,
    TokenRequest,
    TokenSerializer,
)
from kernelhub.api.views.base import ApiView, request_user


class MeView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(operation_id="me", tags=["tokens"], responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Who the caller is and what they may do; useful to try a token."""
        person = None if isinstance(request.user, NodePrincipal) else request.user
        role = user_role(person) if person is not None else None
        return Response(
            {
                "user": person.get_username() or None if person is not None else str(request.user),
                "role": role,
                "scopes": sorted(granted_scopes(request)),
            }
        )


class TokensView(ApiView):
    scopes: ClassVar = {"GET": Scope.TOKENS_WRITE, "POST": Scope.TOKENS_WRITE}

    @extend_schema(operation_id="tokens_list", tags=["tokens"], responses=TokenListSerializer)
    def get(self, request: Request) -> Response:
        """Your tokens, the newest first, revoked ones too."""
        return Response({"results": TokenSerializer(_own(request), many=True).data})

    @extend_schema(
        operation_id="tokens_create",
        tags=["tokens"],
        request=TokenRequest,
        responses={201: IssuedTokenSerializer},
    )
    def post(self, request: Request) -> Response:
        """A new token. Its text stands in this response and can never be read again.

        A token cannot hand out scopes that it does not have itself.
        """
        wanted = read_body(TokenRequest, request)
        scopes = [Scope(name) for name in wanted["scopes"]]
        _refuse_more_than_own(request, scopes)
        try:
            issued = token_create(
                user=request_user(request),
                label=wanted["label"],
                scopes=scopes,
                expires_at=wanted["expires_at"],
            )
        except TokenError as error:
            raise ValidationError({error.field or "non_field_errors": [str(error)]}) from error
        return _issued(issued)


class TokenView(ApiView):
    scopes: ClassVar = {"GET": Scope.TOKENS_WRITE, "DELETE": Scope.TOKENS_WRITE}

    @extend_schema(operation_id="tokens_get", tags=["tokens"], responses=TokenSerializer)
    def get(self, request: Request, token_id: UUID) -> Response:
        """One of your tokens."""
        return Response(TokenSerializer(_own_token(request, token_id)).data)

    @extend_schema(operation_id="tokens_revoke", tags=["tokens"], responses={204: None})
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revoke a token for ever; revoking a revoked one changes nothing."""
        token_revoke(token=_own_token(request, token_id))
        return Response(status=204)


class TokenRotateView(ApiView):
    scopes: ClassVar = {"POST": Scope.TOKENS_WRITE}

    @extend_schema(
        operation_id="tokens_rotate",
        tags=["tokens"],
        request=None,
        responses={201: IssuedTokenSerializer},
    )
    def post(self, request: Request, token_id: UUID) -> Response:
        """Revoke a token and get another with the same label, scopes and lifetime."""
        token = _own_token(request, token_id)
        _refuse_more_than_own(request, [Scope(name) for name in token.scopes])
        try:
            return _issued(token_rotate(token=token))
        except TokenError as error:
            raise ProblemError(Kind.CONFLICT, str(error)) from error


def _own(request: Request) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(user=request_user(request))


def _own_token(request: Request, token_id: UUID) -> ApiToken:
    return get_object_or_404(_own(request), pk=token_id)


def _refuse_more_than_own(request: Request, scopes: list[Scope]) -> None:
    missing = sorted(set(scopes) - assignable_scopes(request))
    if missing:
        raise ValidationError(
            {"scopes": [f"You do not have {', '.join(missing)} to hand out yourself."]}
        )


def _issued(issued: IssuedToken) -> Response:
    body = TokenSerializer(issued.token).data | {"token": issued.text}
    return Response(body, status=201, headers={"Cache-Control": "no-store"})
