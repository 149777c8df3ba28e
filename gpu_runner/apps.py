from __future__ import annotations

from django.apps import AppConfig


class GpuRunnerConfig(AppConfig):
    name = "gpu_runner"
    label = "gpu_runner"
    verbose_name = "GPU fleet"

    def ready(self) -> None:
        from gpu_runner import jobs  # noqa: F401 - registers the hub's jobs
        from gpu_runner.clock import clock_follows_worker
        from gpu_runner.dispatch import on_run_changed
        from kernelhub.core.events import run_changed

        run_changed.connect(on_run_changed, dispatch_uid="gpu_runner.dispatch")
        clock_follows_worker()
