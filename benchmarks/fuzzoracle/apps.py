from __future__ import annotations

from django.apps import AppConfig


class FuzzOracleConfig(AppConfig):
    name = "benchmarks.fuzzoracle"
    label = "fuzzoracle"
    verbose_name = "Seeded fuzz oracle"

    def ready(self) -> None:
        from benchmarks.fuzzoracle.suite import SUITE
        from kernelhub.core import suites

        suites.register(SUITE)
