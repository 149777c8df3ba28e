from __future__ import annotations

from kernelhub.core.models.campaign import Campaign
from kernelhub.core.models.kernel import Kernel
from kernelhub.core.models.node import Node
from kernelhub.core.models.run import Event, Run
from kernelhub.core.models.suite import Suite
from kernelhub.core.models.task import Task, Workload
from kernelhub.core.models.verdict import GateResult, Measurement, Verdict

__all__ = [
    "Campaign",
    "Event",
    "GateResult",
    "Kernel",
    "Measurement",
    "Node",
    "Run",
    "Suite",
    "Task",
    "Verdict",
    "Workload",
]
