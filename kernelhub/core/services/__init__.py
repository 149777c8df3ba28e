"""Everything that writes. Views, commands and jobs call these and change no row themselves."""

from __future__ import annotations

from kernelhub.core.services.campaign import campaign_launch
from kernelhub.core.services.errors import (
    BrokenVerdictError,
    EventGapError,
    FencedError,
    IdempotencyConflictError,
    InvalidKernelError,
    ServiceError,
    TooManyEventsError,
    VerdictMismatchError,
)
from kernelhub.core.services.health import node_held, node_retest, node_sick, node_well
from kernelhub.core.services.kernel import kernel_register, language_of
from kernelhub.core.services.lease import (
    Lease,
    Receipt,
    node_runs_lose,
    node_runs_release,
    run_claim,
    run_error,
    run_event_append,
    run_fault,
    run_fence,
    run_heartbeat,
    run_release,
    run_requeue_expired,
)
from kernelhub.core.services.node import (
    node_offline,
    node_register,
    node_seen,
    nodes_mark_silent,
)
from kernelhub.core.services.run import run_cancel, run_enqueue
from kernelhub.core.services.suite import SuiteSync, suite_sync
from kernelhub.core.services.verdict import run_finish, verdict_breakage

__all__ = [
    "BrokenVerdictError",
    "EventGapError",
    "FencedError",
    "IdempotencyConflictError",
    "InvalidKernelError",
    "Lease",
    "Receipt",
    "ServiceError",
    "SuiteSync",
    "TooManyEventsError",
    "VerdictMismatchError",
    "campaign_launch",
    "kernel_register",
    "language_of",
    "node_held",
    "node_offline",
    "node_register",
    "node_retest",
    "node_runs_lose",
    "node_runs_release",
    "node_seen",
    "node_sick",
    "node_well",
    "nodes_mark_silent",
    "run_cancel",
    "run_claim",
    "run_enqueue",
    "run_error",
    "run_event_append",
    "run_fault",
    "run_fence",
    "run_finish",
    "run_heartbeat",
    "run_release",
    "run_requeue_expired",
    "suite_sync",
    "verdict_breakage",
]
