"""The Celery application: transport for jobs whose truth is the database."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelhub.settings.local")

app = Celery("kernelhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Web servers answer in threads, and "current" is a thing of one thread: messages that are sent
# from the others need this one as the default too.
app.set_default()
