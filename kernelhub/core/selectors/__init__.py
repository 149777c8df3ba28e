"""Everything that reads. Constant numbers of queries, whatever the number of rows."""

from __future__ import annotations

from kernelhub.core.selectors.overview import (
    CampaignProgress,
    OverviewCounts,
    QueueRow,
    RunCounts,
    VerdictCounts,
    campaign_progress,
    fleet,
    overview_counts,
    queue_rows,
    run_counts,
    verdict_counts,
)
from kernelhub.core.selectors.runs import (
    CursorError,
    RunFilters,
    RunOrder,
    RunPage,
    events_after,
    run_detail,
    run_list,
    runs_for_lists,
)
from kernelhub.core.selectors.verdicts import (
    KernelRow,
    LooseVsGates,
    SuiteOverview,
    TaskRow,
    illusion_rows,
    kernel_rows,
    latest_verdicts,
    suite_overview,
)

__all__ = [
    "CampaignProgress",
    "CursorError",
    "KernelRow",
    "LooseVsGates",
    "OverviewCounts",
    "QueueRow",
    "RunCounts",
    "RunFilters",
    "RunOrder",
    "RunPage",
    "SuiteOverview",
    "TaskRow",
    "VerdictCounts",
    "campaign_progress",
    "events_after",
    "fleet",
    "illusion_rows",
    "kernel_rows",
    "latest_verdicts",
    "overview_counts",
    "queue_rows",
    "run_counts",
    "run_detail",
    "run_list",
    "runs_for_lists",
    "suite_overview",
    "verdict_counts",
]
