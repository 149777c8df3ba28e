"""Addresses of API v1, below /api/v1/. They end without a slash; one with a slash works too."""

from __future__ import annotations

from django.urls import path, re_path

from kernelhub.api.longpoll import run_events
from kernelhub.api.views import campaigns, catalogue, meta, nodes, runs, tokens

app_name = "api"

urlpatterns = [
    path("openapi.json", meta.OpenApiView.as_view(), name="openapi"),
    path("docs/", meta.DocsView.as_view(url_name="api:openapi"), name="docs"),
    path("me", tokens.MeView.as_view(), name="me"),
    path("tokens", tokens.TokensView.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>", tokens.TokenView.as_view(), name="token"),
    path("tokens/<uuid:token_id>/rotate", tokens.TokenRotateView.as_view(), name="token-rotate"),
    path("suites", catalogue.SuitesView.as_view(), name="suites"),
    path("suites/<slug:suite>", catalogue.SuiteView.as_view(), name="suite"),
    path("tasks", catalogue.TasksView.as_view(), name="tasks"),
    path("tasks/<slug:suite>/<slug:task>", catalogue.TaskView.as_view(), name="task"),
    path("kernels/<uuid:kernel_id>", catalogue.KernelView.as_view(), name="kernel"),
    path("runs", runs.RunsView.as_view(), name="runs"),
    path("runs/<uuid:run_id>", runs.RunView.as_view(), name="run"),
    path("runs/<uuid:run_id>/events", run_events, name="run-events"),
    path("runs/<uuid:run_id>/verdict", runs.RunVerdictView.as_view(), name="run-verdict"),
    path("runs/<uuid:run_id>/cancel", runs.RunCancelView.as_view(), name="run-cancel"),
    path("nodes", nodes.NodesView.as_view(), name="nodes"),
    path("campaigns", campaigns.CampaignsView.as_view(), name="campaigns"),
    path("campaigns/<uuid:campaign_id>", campaigns.CampaignView.as_view(), name="campaign"),
    re_path(r"^.*$", meta.fallback, name="fallback"),
]
