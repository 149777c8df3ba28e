"""What a suite is to the rest of kernelhub, and the registry that the suites enter themselves.

``benchmarks/<suite>/apps.py`` calls ``register`` in its ``ready()``. Adding a suite is adding a
folder and its line in INSTALLED_APPS; nothing else names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kernelhub.core.choices import AuthorKind


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """One concrete assignment of a task's dims and dtypes, as the suite defines it."""

    name: str
    dims: Mapping[str, int] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A task as its suite defines it: ``contract`` is task.json, ``reference`` is reference.py."""

    slug: str
    title: str
    category: str
    tags: tuple[str, ...]
    contract: Mapping[str, Any]
    reference: str
    workloads: tuple[WorkloadSource, ...] = ()
    difficulty: int | None = None

    @property
    def digest(self) -> str:
        """Changes exactly when the contract or the reference changes; names a task folder."""
        return task_digest(self.contract, self.reference)

    @property
    def listing(self) -> str:
        """Changes when the rest changes: what the task is called and how it is weighed."""
        rest = (self.title, self.category, self.tags, self.difficulty, self.workloads)
        return hashlib.sha256(
            json.dumps(rest, sort_keys=True, default=_as_json).encode()
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel of a suite's corpus, which the demo campaign judges.

    ``expectation`` is what the corpus says of it: 'control', 'bug', 'illusion' or ''.
    """

    task_slug: str
    label: str
    source: str
    entry: str = "run"
    author_kind: str = AuthorKind.CONTROL.value
    expectation: str = ""
    group: str = ""
    note: str = ""


class SuiteDefinition(Protocol):
    """What a suite gives to core. Both iterables may be read more than once."""

    @property
    def slug(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def order(self) -> int: ...

    def tasks(self) -> Iterable[TaskSource]: ...

    def corpus(self) -> Iterable[KernelSource]: ...


def _as_json(workload: WorkloadSource) -> list[object]:
    dims, dtypes = dict(workload.dims), dict(workload.dtypes)
    return [workload.name, dims, dtypes, workload.weight, workload.phase]


_registry: dict[str, SuiteDefinition] = {}


def contract_text(contract: Mapping[str, Any]) -> str:
    """The contract as canonical JSON: the same text for the same contract."""
    return json.dumps(contract, sort_keys=True, separators=(",", ":"))


def task_digest(contract: Mapping[str, Any], reference: str) -> str:
    """sha256 over canonical JSON of the contract and the bytes of the reference.

    The same formula as the verifier's: a node refuses a task folder whose digest differs.
    """
    return hashlib.sha256(f"{contract_text(contract)}\0{reference}".encode()).hexdigest()


def register(suite: SuiteDefinition) -> None:
    """Enters a suite; raises ValueError where another one already has its slug."""
    known = _registry.setdefault(suite.slug, suite)
    if known is not suite and type(known) is not type(suite):
        raise ValueError(f"two suites call themselves {suite.slug!r}")


def registered() -> tuple[SuiteDefinition, ...]:
    """Every suite in the order of its ``order``."""
    return tuple(sorted(_registry.values(), key=lambda suite: (suite.order, suite.slug)))


def get(slug: str) -> SuiteDefinition:
    """The suite of that slug; LookupError names those that exist."""
    try:
        return _registry[slug]
    except KeyError:
        known = ", ".join(sorted(_registry)) or "none"
        raise LookupError(f"no suite {slug!r}; registered: {known}") from None
