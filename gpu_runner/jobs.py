"""Celery jobs of the hub, each one a call. The node's only job is in gpu_runner.node."""

from __future__ import annotations

from celery import shared_task

from gpu_runner.clock import tick


@shared_task(name="gpu_runner.tick", ignore_result=True)
def tick_job() -> None:
    """A round of the clock on request, for a site that runs Celery's beat."""
    tick()
