"""Addresses of the pages."""

from __future__ import annotations

from django.urls import URLPattern, path

from kernelhub.web.views import auth, fleet, kernels, overview, run, runs, suites, verifier

app_name = "web"
urlpatterns: list[URLPattern] = [
    path("", overview.overview, name="overview"),
    path("runs/", runs.runs_page, name="runs"),
    path("runs/export.csv", runs.runs_csv, name="runs-csv"),
    path("runs/export.json", runs.runs_json, name="runs-json"),
    path("runs/<uuid:pk>/", run.run_page, name="run"),
    path("runs/<uuid:pk>/cancel/", run.run_cancel_page, name="run-cancel"),
    path("runs/<uuid:pk>/verdict.json", run.verdict_file, name="verdict"),
    path("runs/<uuid:pk>/measurements.csv", run.measurements_csv, name="measurements-csv"),
    path("runs/<uuid:pk>/measurements.json", run.measurements_json, name="measurements-json"),
    path("kernels/<uuid:pk>/", kernels.kernel_page, name="kernel"),
    path("kernels/<uuid:pk>/source/", kernels.kernel_source, name="kernel-source"),
    path("suites/", suites.suites_page, name="suites"),
    path("suites/<slug:slug>/", suites.suite_page, name="suite"),
    path("tasks/<slug:suite>/<slug:slug>/", suites.task_page, name="task"),
    path("verifier/", verifier.verifier_page, name="verifier"),
    path("fleet/", fleet.fleet_page, name="fleet"),
    path("login/", auth.SignIn.as_view(), name="login"),
    path("logout/", auth.SignOut.as_view(), name="logout"),
]
