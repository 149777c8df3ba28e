"""Stands in for ``python -m verifier serve``: the protocol without torch.

What it does with a job is written in the kernel: ``ACCEPT``, ``REJECT``, ``HANG`` (until it is
cancelled), ``ONCE-HANG`` (only at its first try), ``DEAF`` (hangs and ignores the cancel),
``CRASH``, ``GARBAGE``, ``BAD-TASK``, ``BROKEN``, ``BROKEN-GATE``, ``SURROGATE``, ``NAN`` or
``CHATTY``, ``SICK`` (the device fails in the run), ``TOGETHER`` (only ends once another run is
under way beside it). Its arguments are modes: ``never-ready``, ``dies``, or ``ailing``, which
finds its device sick at the start while there is a file ``ailing`` in its folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from verifier import records

ENVIRONMENT = records.Environment(
    records.DeviceMode.CPU_INTERPRET, "fake", "cpu-0", "3.11", "", "", "", "linux", "none"
)


GOOD = records.HealthReport("start", (records.HealthCheck("answer", records.HealthState.GOOD),))
SICK = records.HealthReport(
    "start",
    (records.HealthCheck("answer", records.HealthState.SICK, "7 integers came out wrong"),),
)


def say(job: str, event: str, payload: Any) -> None:
    sys.stdout.write(json.dumps({"id": job, "t": 0.0, "event": event, "payload": payload}) + "\n")
    sys.stdout.flush()


def gate(gate_id: records.GateId, source: str) -> records.GateResult:
    first = gate_id.value == "G1"
    if first and "BROKEN-GATE" in source:
        return records.GateResult(gate_id, records.GateStatus.ERROR, "", reason="KeyError: 'x'")
    if not first or "REJECT" not in source:
        return records.GateResult(gate_id, records.GateStatus.PASS, "agrees", passed=1)
    case = records.CaseRecord("n=1", {"n": 1}, {}, "normal", 1)
    found = records.Counterexample(case, "differs", (records.CallDigest("a", "b"),))
    return records.GateResult(
        gate_id,
        records.GateStatus.FAIL,
        "differs",
        reason="differs",
        failed=1,
        counterexample=found,
    )


def verdict(job: dict[str, Any], source: str) -> dict[str, Any]:
    contract = json.loads((Path(job["task"]) / "task.json").read_text())
    reference = (Path(job["task"]) / "reference.py").read_text()
    canonical = json.dumps(contract, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{canonical}\0{reference}".encode()).hexdigest()
    gates = tuple(gate(one, source) for one in records.GateId)
    for result in gates:
        say(job["id"], "gate", records.to_json(result))
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    kernel = records.KernelRef(sha256, job["entry"], records.Language.TORCH, source)
    loose = records.LooseResult(True, 5, 1e-2, 1e-2, {}, {})
    whole = records.Verdict(
        records.TaskRef("t", digest), kernel, job["seed"], gates, loose, ENVIRONMENT, "now", 1.0
    )
    return records.to_json(whole)


def judge(job: dict[str, Any], cancels: queue.Queue[str]) -> None:
    source = Path(job["kernel"]).read_text()
    say(job["id"], "started", {"task": "t", "kernel": "k", "device": "fake"})
    again = Path("hung-once")
    if "HANG" in source and not ("ONCE" in source and again.exists()):
        again.touch()
        while cancels.get() != job["id"]:
            pass
        return say(job["id"], "cancelled", {})
    if "DEAF" in source:
        time.sleep(600)
    if "CRASH" in source:
        sys.stderr.write("the device fell off the bus\n")
        sys.exit(9)
    if "GARBAGE" in source:
        sys.stdout.write("this is no JSON\n")
        sys.stdout.flush()
        time.sleep(600)
    if "BAD-TASK" in source:
        return say(job["id"], "error", {"message": "bad task", "advice": "mend", "kind": "task"})
    if "BROKEN " in source:
        return say(job["id"], "error", {"message": "no GPU", "kind": "infrastructure"})
    if "SICK" in source:
        sick: dict[str, Any] = {
            "message": "the device is sick: 7 integers came out wrong",
            "advice": "again",
        }
        sick |= {"kind": "infrastructure", "health": records.to_json(SICK)}
        say(job["id"], "error", sick)
        sys.exit(3)
    if "TOGETHER" in source:
        together(job["id"])
    if "CHATTY" in source:
        for number in range(5000):
            say(job["id"], "log", {"source": "kernel", "text": f"line {number} " + "x" * 10_000})
    if "SURROGATE" in source:
        say(job["id"], "log", {"source": "kernel", "text": "a\ud800b\0c"})
    if "NAN" in source:
        say(job["id"], "measurement", {"latency_ms": float("nan")})
    return say(job["id"], "verdict", verdict(job, source))


def together(job_id: str) -> None:
    """Waits until two are here at the same time."""
    mark = Path(f"together-{job_id.replace(':', '-')}")
    mark.touch()
    while len(list(Path().glob("together-*"))) < 2:
        time.sleep(0.02)


def read(jobs: queue.Queue[dict[str, Any]], cancels: queue.Queue[str]) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "cancel" in message:
            cancels.put(message["cancel"])
        else:
            jobs.put(message)
    os._exit(0)  # as the real one: the agent has gone, in the middle of a job or not


def main() -> None:
    if "never-ready" in sys.argv:
        time.sleep(600)
    if "dies" in sys.argv:
        sys.stderr.write("no torch here\n")
        sys.exit(3)
    if "ailing" in sys.argv:
        with Path("examined").open("a") as seen:
            seen.write("x")
        if Path("ailing").exists():
            say("", "health", records.to_json(SICK))
            sys.exit(3)
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    cancels: queue.Queue[str] = queue.Queue()
    threading.Thread(target=read, args=(jobs, cancels), daemon=True).start()
    say("", "health", records.to_json(GOOD))
    say("", "ready", records.to_json(ENVIRONMENT))
    while True:
        judge(jobs.get(), cancels)


main()
