"""What the sockets read, as plain JSON values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser

from kernelhub.accounts.permissions import public_scopes
from kernelhub.accounts.roles import Scope, role_scopes, user_role
from kernelhub.core.choices import ENDED
from kernelhub.core.models import Campaign, Event, Run
from kernelhub.core.selectors import campaign_progress, events_after, run_counts

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def may_read(user: User | AnonymousUser | None) -> bool:
    """Whether this user may follow runs; everybody may where reading is public."""
    return Scope.RUNS_READ in role_scopes(user_role(user or AnonymousUser())) | public_scopes()


@dataclass(frozen=True, slots=True)
class RunBatch:
    """A run's events after a number, and where the run stood before they were read."""

    status: str
    last_seq: int
    events: list[dict[str, Any]]

    @property
    def ended(self) -> bool:
        return self.status in ENDED


def run_batch(run_id: UUID, after: int, limit: int) -> RunBatch | None:
    """The next events; None without such a run.

    The state is read first: whatever it says has ended, all its events are there by then.
    """
    state = Run.objects.filter(pk=run_id).values_list("status", "last_seq").first()
    if state is None:
        return None
    status, last_seq = state
    events = events_after(run_id, after, limit) if last_seq > after else []
    return RunBatch(status, last_seq, [_event_json(event) for event in events])


def _event_json(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "attempt": event.attempt,
        "kind": event.kind,
        "payload": event.payload,
        "at": event.created_at.isoformat(),
    }


def overview_standing() -> dict[str, int]:
    """Runs by status over the whole hub, and the number of the latest event."""
    latest = Event.objects.order_by("-id").values_list("id", flat=True).first()
    return {**asdict(run_counts()), "event": latest or 0}


def campaign_standing(campaign_id: UUID) -> dict[str, int] | None:
    """A campaign's runs by status; None without such a campaign."""
    try:
        progress = campaign_progress(campaign_id)
    except Campaign.DoesNotExist:
        return None
    return asdict(progress.runs)
