from __future__ import annotations

from django.urls import path

from kernelhub.api.node import views

app_name = "node"

urlpatterns = [
    path("register/", views.RegisterView.as_view(), name="register"),
    path("health/", views.HealthView.as_view(), name="health"),
    path("goodbye/", views.GoodbyeView.as_view(), name="goodbye"),
    path("lease/", views.LeaseView.as_view(), name="lease"),
    path("runs/<uuid:run_id>/task/<int:attempt>/", views.TaskView.as_view(), name="task"),
    path("runs/<uuid:run_id>/heartbeat/", views.HeartbeatView.as_view(), name="heartbeat"),
    path("runs/<uuid:run_id>/events/", views.EventsView.as_view(), name="events"),
    path("runs/<uuid:run_id>/verdict/", views.VerdictView.as_view(), name="verdict"),
    path("runs/<uuid:run_id>/error/", views.ErrorView.as_view(), name="error"),
    path("runs/<uuid:run_id>/release/", views.ReleaseView.as_view(), name="release"),
]
