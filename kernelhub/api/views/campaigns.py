"""Campaigns, which curators launch and everybody watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound, PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from kernelhub.accounts.roles import Role, Scope, user_role
from kernelhub.api.pagination import Keyset, next_url
from kernelhub.api.problems import Kind, ProblemError
from kernelhub.api.serializers.base import read_body, read_query
from kernelhub.api.serializers.campaigns import (
    CampaignDetailSerializer,
    CampaignListSerializer,
    CampaignQuery,
    CampaignRequest,
    CampaignSerializer,
)
from kernelhub.api.submissions import check_queue
from kernelhub.api.views.base import ApiView, request_user
from kernelhub.core.models import Campaign, Kernel
from kernelhub.core.selectors import campaign_progress
from kernelhub.core.services import campaign_launch

NEWEST: Final = Keyset(fields=("created_at", "id"), descending=True)


class CampaignsView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ, "POST": Scope.RUNS_WRITE}

    @extend_schema(
        operation_id="campaigns_list",
        tags=["campaigns"],
        parameters=[CampaignQuery],
        responses=CampaignListSerializer,
    )
    def get(self, request: Request) -> Response:
        """Campaigns, the newest first."""
        query = read_query(CampaignQuery, request)
        rows = Campaign.objects.select_related("created_by")
        page = NEWEST.page(rows, cursor=query["cursor"], limit=query["limit"])
        results = CampaignSerializer(page.rows, many=True).data
        return Response({"results": results, "next": next_url(request, page.next_cursor)})

    @extend_schema(
        operation_id="campaigns_launch",
        tags=["campaigns"],
        request=CampaignRequest,
        responses={201: CampaignDetailSerializer},
    )
    def post(self, request: Request) -> Response:
        """Launch one run of each kernel on each queue. For curators and administrators."""
        user = request_user(request)
        role = user_role(user)
        if role is None or not role.covers(Role.CURATOR):
            raise PermissionDenied("Only curators and administrators launch campaigns.")
        wanted = read_body(CampaignRequest, request)
        kernels = _kernels(wanted["kernels"])
        for place, queue in enumerate(wanted["queues"]):
            check_queue(queue, field=("queues", place))
        campaign = _launch(wanted | {"kernels": kernels, "created_by": user})
        headers = {"Location": f"{request.path.rstrip('/')}/{campaign.pk}"}
        return Response(campaign_document(campaign.pk), status=201, headers=headers)


class CampaignView(ApiView):
    scopes: ClassVar = {"GET": Scope.RUNS_READ}

    @extend_schema(
        operation_id="campaigns_get", tags=["campaigns"], responses=CampaignDetailSerializer
    )
    def get(self, request: Request, campaign_id: UUID) -> Response:
        """One campaign and how far it is."""
        return Response(campaign_document(campaign_id))


def campaign_document(campaign_id: UUID) -> dict[str, Any]:
    """The campaign with its counts; NotFound without it."""
    try:
        progress = campaign_progress(campaign_id)
    except Campaign.DoesNotExist as error:
        raise NotFound("There is no such campaign.") from error
    campaign: Any = progress.campaign
    campaign.runs_counted, campaign.verdicts_counted = progress.runs, progress.verdicts
    campaign.done = progress.done
    return dict(CampaignDetailSerializer(campaign).data)


def _kernels(wanted: Sequence[UUID]) -> list[Kernel]:
    """The kernels in the order asked for; ValidationError points at each that is not there."""
    found = Kernel.objects.in_bulk(wanted)
    missing = {
        str(place): [f"There is no kernel {key}."]
        for place, key in enumerate(wanted)
        if key not in found
    }
    if missing:
        raise ValidationError({"kernels": missing})
    return [found[key] for key in dict.fromkeys(wanted)]


@transaction.atomic
def _launch(wanted: dict[str, Any]) -> Campaign:
    """A new campaign. The service would extend one of the same slug, which nobody means here."""
    if Campaign.objects.filter(slug=wanted["slug"]).exists():
        raise ProblemError(Kind.CONFLICT, f"A campaign {wanted['slug']} exists already.")
    try:
        campaign, _ = campaign_launch(**wanted)
    except IntegrityError as error:
        raise ProblemError(Kind.CONFLICT, "A campaign of this slug was just launched.") from error
    return campaign
