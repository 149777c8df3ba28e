"""The API about itself: its schema, its page, and what answers where nothing is."""

from __future__ import annotations

from inspect import iscoroutinefunction
from json import dumps
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kernelhub.api.views.base import ApiView


@extend_schema(exclude=True)
class OpenApiView(SpectacularJSONAPIView):
    """The OpenAPI document; it describes nothing that is not public code."""

    permission_classes = (AllowAny,)


@extend_schema(exclude=True)
class DocsView(SpectacularSwaggerSplitView):
    """Swagger, from our own static files; its script is a file too, as our policy demands.

    The script brings the document along, so that the page is whole as soon as it is loaded: no
    spinner that a second request has to end.
    """

    permission_classes = (AllowAny,)
    template_name = "api/docs.html"
    template_name_js = "api/docs.js"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        if "script" in request.GET:
            response.data["schema"] = _schema(request)
        return response


def _schema(request: Request) -> str:
    """The OpenAPI document as a JavaScript literal."""
    generator: Any = OpenApiView.generator_class()
    return dumps(generator.get_schema(request=request, public=True))


@extend_schema(exclude=True)
class NothingHereView(ApiView):
    """Any other address below /api/v1/: a problem document instead of a page for people."""

    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(f"Nothing is at {request.path}; /api/v1/docs/ lists what there is.")


_nothing_here = NothingHereView.as_view()


def fallback(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
    """An address with a slash too many means the one without it; all others are not found."""
    try:
        match = resolve(request.path_info.rstrip("/"))
    except Resolver404:
        return _nothing_here(request)
    if match.func is fallback or not request.path_info.endswith("/"):
        return _nothing_here(request)
    view = async_to_sync(match.func) if iscoroutinefunction(match.func) else match.func
    response: HttpResponseBase = view(request, *match.args, **match.kwargs)
    return response


fallback.csrf_exempt = True  # type: ignore[attr-defined]  # the views check sessions themselves
