"""The JSON contract between the verifier and everything that reads its verdicts.

Frozen dataclasses and enums on the standard library and cattrs alone: the web, the API and the
node agent import this module and nothing else of the verifier. Illegal states raise in
``__post_init__``; ``to_json`` and ``from_json`` are exact inverses for every record here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

import cattrs
from cattrs.v import format_exception

VERIFIER_VERSION: Final = "0.1.0"
"""Changes with any behaviour of the verifier; stored in each verdict."""

GATE_SET_VERSION: Final = 2
"""Changes when a gate's judgement could change; verdicts of different gate sets are not mixed."""

SCHEMA_VERSION: Final = 1
"""Shape of the verdict document."""


class RecordError(ValueError):
    """A document does not fit its record; the message lists each offending field with its path."""


class GateId(StrEnum):
    """The twelve gates, in the order in which every page and every document shows them."""

    AGREEMENT = "G1"
    NONFINITE = "G2"
    DETERMINISM = "G3"
    SHAPES = "G4"
    DTYPES = "G5"
    ACCUMULATION = "G6"
    LAYOUT = "G7"
    SIDE_EFFECTS = "G8"
    MEMORY = "G9"
    RANGE = "G10"
    METAMORPHIC = "G11"
    HONEST = "G12"

    @property
    def number(self) -> int:
        return int(self.value[1:])


class GateStatus(StrEnum):
    """What a gate, or one case of it, found. Only PASS counts as passed."""

    PASS = "PASS"  # noqa: S105 - no password
    FAIL = "FAIL"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


NOT_ASKED: Final = "not asked for"
"""Reason of a gate that the job left out."""

NEEDS_REASON: Final = frozenset(
    {GateStatus.NOT_APPLICABLE, GateStatus.INCONCLUSIVE, GateStatus.ERROR, GateStatus.FAIL}
)


class Outcome(StrEnum):
    """The one-word result of a verdict.

    ACCEPTED: gate 1 passed (or, if it was not asked for, some other), the others passed or do not
    apply. REJECTED: some gate failed. UNDECIDED: nothing failed, but something stayed open, or
    whether the kernel agrees with its reference could not be judged.
    """

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


class DeviceMode(StrEnum):
    """How kernels run on the judging machine."""

    CUDA = "cuda"
    CPU_INTERPRET = "cpu-interpret"


class Language(StrEnum):
    """What a kernel is written in, read from its source and never from what it claims."""

    TRITON = "triton"
    CUDA = "cuda"
    TORCH = "torch"
    NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class GateInfo:
    """What `python -m verifier gates` prints for one gate."""

    id: GateId
    name: str
    property: str
    tolerance_free: bool


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One judged situation as plain data: enough, with the task, to build its inputs again.

    ``dims`` maps each symbolic dim to its size, ``dtypes`` each dtype variable to a torch dtype
    name, ``fill`` names the value pattern, ``seed`` keys the generator and ``params`` holds what
    the gate varied (layout, poison, relation, ...).
    """

    label: str
    dims: Mapping[str, int]
    dtypes: Mapping[str, str]
    fill: str
    seed: int
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallDigest:
    """sha256 over the input bytes and over the output bytes of one call; '' when none came back."""

    inputs: str
    outputs: str


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A few values around the first offending index, as text so that NaN and -0.0 survive JSON."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: tuple[int, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest failing case found, with the evidence and the digests that a replay must meet.

    ``index`` is the first offending index in output ``output``; ``expected`` and ``got`` are the
    values there as text ('' where the failure is no value, such as a crash).
    """

    case: CaseRecord
    detail: str
    calls: tuple[CallDigest, ...]
    output: str = ""
    index: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    slices: tuple[TensorSlice, ...] = ()
    minimised_from: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseNote:
    """Why some cases of a gate were not judged, or stayed open: reason and how many of them."""

    status: GateStatus
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate's finding. ``hard`` marks a failure that no tolerance had a part in."""

    gate: GateId
    status: GateStatus
    summary: str
    reason: str = ""
    hard: bool = False
    passed: int = 0
    failed: int = 0
    notes: tuple[CaseNote, ...] = ()
    counterexample: Counterexample | None = None
    duration_ms: float = 0.0
    evidence: tuple[str, ...] = ()
    """What passed cases have to say for themselves: how many runs, whose time on the device."""

    def __post_init__(self) -> None:
        if self.status in NEEDS_REASON and not self.reason:
            raise RecordError(f"{self.gate}: {self.status} needs a reason")
        if (self.status is GateStatus.FAIL) != (self.counterexample is not None):
            raise RecordError(f"{self.gate}: a counterexample comes with FAIL and only with FAIL")
        if self.hard and self.status is not GateStatus.FAIL:
            raise RecordError(f"{self.gate}: only a failure can be hard")
        if self.status is GateStatus.PASS and (self.passed == 0 or self.failed):
            raise RecordError(f"{self.gate}: PASS needs a passed case and no failed one")


@dataclass(frozen=True, slots=True)
class LooseResult:
    """The field's standard check, really run: `trials` draws of allclose at one shape."""

    accepted: bool
    trials: int
    atol: float
    rtol: float
    dims: Mapping[str, int]
    dtypes: Mapping[str, str]
    detail: str = ""


class Clock(StrEnum):
    """What a latency was read from."""

    WALL = "wall"
    """The referee's clock around whole calls, in the interpreter."""
    EVENTS = "events"
    """Device events around each call, agreed to by the referee's clock."""
    GRAPH = "graph"
    """The same inside a CUDA graph, because the host is slower than the device (launch-bound)."""
    REFEREE = "referee"
    """The referee's clock over unbroken rows of calls, what the host needs included: the events
    could not be confirmed."""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What the device was doing: MHz, degrees Celsius, watts; 0 where its driver does not say."""

    sm_mhz: float = 0.0
    most_sm_mhz: float = 0.0
    memory_mhz: float = 0.0
    temperature_c: float = 0.0
    power_w: float = 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """Median latency of one subject on one workload, with a bootstrap 95% interval over n calls.

    ``subject`` is 'kernel', 'eager' or 'compile'. ``speedup`` (eager over this subject) exists
    only where the correctness gates passed, the device is a real one and the time was believed:
    ``rejected`` says why it was not. ``latency_ms`` is with a cold L2 cache, ``warm_ms`` with the
    inputs just written; ``check`` is the arithmetic of the two clocks, ``floor_ms`` the least time
    that the roofline allows. See docs/timing.md.
    """

    workload: str
    subject: str
    latency_ms: float
    low_ms: float
    high_ms: float
    n: int
    speedup: float | None = None
    note: str = ""
    clock: Clock = Clock.WALL
    repeats: int = 1
    warm_ms: float | None = None
    floor_ms: float | None = None
    check: str = ""
    rejected: str = ""
    state: DeviceState | None = None

    def __post_init__(self) -> None:
        if not 0 < self.low_ms <= self.latency_ms <= self.high_ms or self.n < 1:
            raise RecordError(f"{self.workload}/{self.subject}: latency outside its own interval")
        if self.rejected and self.speedup is not None:
            raise RecordError(f"{self.workload}/{self.subject}: a rejected time has no speedup")


class DeepStatus(StrEnum):
    """What one tool of the deep mode has to say. Only CLEAN says that it saw nothing."""

    CLEAN = "clean"
    FINDINGS = "findings"
    NOT_AVAILABLE = "not available"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class DeepFinding:
    """What a tool reported of one place in one kernel, as it met it first; ``count`` times in all.

    ``thread`` and ``block`` are x, y, z where the tool says them; ``source`` is file and line where
    the machine code names them; ``level`` is the tool's own word for how grave it is.
    """

    what: str
    kernel: str
    space: str = ""
    level: str = ""
    thread: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    source: str = ""
    detail: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class DeepResult:
    """One tool's look into a kernel at work. It is no gate and changes none: see docs/deep.md.

    ``count`` reports are of the kernel's own launches, ``elsewhere`` more of a library's; of the
    former the first different ones are ``findings``. ``cases`` names the calls that were made.
    """

    tool: str
    status: DeepStatus
    reason: str = ""
    count: int = 0
    findings: tuple[DeepFinding, ...] = ()
    elsewhere: int = 0
    cases: tuple[str, ...] = ()
    version: str = ""
    duration_ms: float = 0.0

    def __post_init__(self) -> None:
        if (self.status is DeepStatus.FINDINGS) != bool(self.count and self.findings):
            raise RecordError(f"{self.tool}: findings come with FINDINGS and only with FINDINGS")
        silent = self.status in (DeepStatus.NOT_AVAILABLE, DeepStatus.UNDECIDED)
        if silent and not self.reason:
            raise RecordError(f"{self.tool}: {self.status} needs a reason")
        if self.status is DeepStatus.CLEAN and not self.cases:
            raise RecordError(f"{self.tool}: nothing was called, so nothing is clean")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where and with what a verdict was reached."""

    mode: DeviceMode
    device_name: str
    device_uuid: str
    python: str
    torch: str
    triton: str
    numpy: str
    platform: str
    sandbox: str
    driver: str = ""
    capability: str = ""
    cuda: str = ""
    """Version of the CUDA that torch was built for."""


@dataclass(frozen=True, slots=True)
class TaskRef:
    """Which task was judged: its name, and the digest of contract plus reference."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class KernelRef:
    """Which kernel was judged. ``source`` rides along so that a verdict can be replayed alone."""

    sha256: str
    entry: str
    language: Language
    source: str
    convention: str = "function"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Write-once result of judging one kernel on one device: exactly twelve gate results."""

    task: TaskRef
    kernel: KernelRef
    seed: int
    gates: tuple[GateResult, ...]
    loose: LooseResult | None
    environment: Environment
    started_at: str
    duration_ms: float
    measurements: tuple[Measurement, ...] = ()
    deep: tuple[DeepResult, ...] = ()
    """Where the deep mode was asked for; it has no say in the outcome."""
    verifier_version: str = VERIFIER_VERSION
    gate_set: int = GATE_SET_VERSION
    schema: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if tuple(result.gate for result in self.gates) != tuple(GateId):
            raise RecordError("a verdict holds the twelve gates, each once, in order")
        gated = self.correct
        if not gated and any(m.speedup is not None for m in self.measurements):
            raise RecordError("a speedup exists only where the correctness gates passed")

    @property
    def outcome(self) -> Outcome:
        asked = [result for result in self.gates if result.reason != NOT_ASKED]
        statuses = {result.status for result in asked}
        if GateStatus.FAIL in statuses:
            return Outcome.REJECTED
        if GateStatus.PASS not in statuses or statuses - {
            GateStatus.PASS,
            GateStatus.NOT_APPLICABLE,
        }:
            return Outcome.UNDECIDED
        first = asked[0]
        agrees = first.status is GateStatus.PASS or first.gate is not GateId.AGREEMENT
        return Outcome.ACCEPTED if agrees else Outcome.UNDECIDED

    @property
    def correct(self) -> bool:
        """Whether the kernel may be timed and ranked."""
        return self.outcome is Outcome.ACCEPTED

    @property
    def illusion(self) -> bool:
        """Accepted by the loose test, rejected by the gates."""
        return bool(self.loose and self.loose.accepted and self.outcome is Outcome.REJECTED)

    @property
    def hard(self) -> bool:
        """Whether some tolerance-free finding failed."""
        return any(result.hard for result in self.gates)


class HealthState(StrEnum):
    """What one check of a device found. UNKNOWN: this machine does not say."""

    GOOD = "good"
    WARNING = "warning"
    SICK = "sick"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One question that was put to the device, and its answer in words."""

    name: str
    state: HealthState
    detail: str = ""

    def __post_init__(self) -> None:
        if self.state in (HealthState.SICK, HealthState.WARNING) and not self.detail:
            raise RecordError(f"{self.name}: {self.state} needs a detail")


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Whether a device can be trusted. ``cause`` says why somebody looked ('start', ...)."""

    cause: str
    checks: tuple[HealthCheck, ...]
    device: str = ""
    duration_ms: float = 0.0

    @property
    def sick(self) -> bool:
        return any(check.state is HealthState.SICK for check in self.checks)

    @property
    def reason(self) -> str:
        """What is wrong, '' when nothing is."""
        return "; ".join(c.detail for c in self.checks if c.state is HealthState.SICK)


class EventKind(StrEnum):
    """Kinds of line that `--events` prints, in the order in which they first appear."""

    STARTED = "started"
    LOG = "log"
    LOOSE = "loose"
    GATE_STARTED = "gate_started"
    GATE = "gate"
    MEASUREMENT = "measurement"
    DEEP = "deep"
    VERDICT = "verdict"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of the event stream: seconds since the start, a kind, and a JSON payload.

    Payloads: started = {task, kernel, device}; log = {source, text}; loose = LooseResult;
    gate_started = {gate}; gate = GateResult; measurement = Measurement; deep = DeepResult;
    verdict = Verdict; error = {message, advice}.
    """

    t: float
    event: EventKind
    payload: Mapping[str, Any]


Record = TypeVar("Record")


def _strict(kind: type[Any]) -> Callable[[Any, Any], Any]:
    """A hook that takes values of exactly this JSON kind: no '1' for 1, no true for 1."""
    accepted = (int, float) if kind is float else (kind,)

    def structure(value: Any, target: type[Any]) -> Any:
        if isinstance(value, bool) is not (kind is bool) or not isinstance(value, accepted):
            raise ValueError(f"{value!r} is not a {kind.__name__}")
        # The hook for str also gets the StrEnums, which are strings too.
        return target(value)

    return structure


def _explain(error: BaseException, kind: type[Any] | None) -> str:
    """What was wrong with one field, in our words where the error is ours."""
    if isinstance(error, ValueError):
        return str(error)
    return format_exception(error, kind)


def make_converter() -> cattrs.Converter:
    """A converter that coerces nothing and refuses unknown fields."""
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (bool, int, float, str):
        converter.register_structure_hook(kind, _strict(kind))
    return converter


_converter = make_converter()


def to_json(record: Any) -> dict[str, Any]:
    """The record as plain JSON values."""
    document: dict[str, Any] = _converter.unstructure(record)
    return document


def explain_structure_error(error: Exception, root: str) -> str:
    """One line naming each field that did not fit, as a path below ``root``."""
    problems = cattrs.transform_error(error, path=root, format_exception=_explain)
    return "; ".join(problems)


def from_json(kind: type[Record], document: Any) -> Record:
    """The document as a record; RecordError names each field that does not fit."""
    try:
        return _converter.structure(document, kind)
    except Exception as error:
        raise RecordError(explain_structure_error(error, kind.__name__)) from error
