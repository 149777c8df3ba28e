"""KernelBench's real ``eval_kernel_against_ref``, run from a checkout in processes of its own.

``python -m verifier.defences.upstream CHECKOUT N`` reads a JSON job a line and answers each with
a line. It imports torch, Triton and the checkout once, then forks a child for each job, for one
kernel that faults the device would poison whatever shares its process. **Nothing is sandboxed here:
the upstream code runs a kernel in its own process.** Give it kernels that you would run yourself.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import subprocess
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

STANDINS: Final = ("dotenv", "openai", "litellm", "tqdm", "datasets", "requests", "tomli")
"""Modules that upstream imports beside its test, for language models and data sets. Where one is
not installed an empty one stands in, and the run says so; the test itself uses none of them."""


EVAL: Final = Path("src/kernelbench/eval.py")


@dataclass(frozen=True, slots=True)
class UpstreamJob:
    """One kernel for ``eval_kernel_against_ref``."""

    id: str
    original: str
    custom: str
    precision: str
    backend: str
    trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class UpstreamReply:
    """What it said; ``accepted`` is None where it could not say anything."""

    id: str
    accepted: bool | None
    detail: str


def identify(checkout: Path) -> str:
    """Which upstream code this is: the digest of its eval.py, and the commit where git knows it."""
    digest = hashlib.sha256((checkout / EVAL).read_bytes()).hexdigest()[:12]
    if not (checkout / ".git").exists():
        return f"KernelBench, eval.py {digest}"
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"KernelBench {done.stdout.strip()}, eval.py {digest}"


def run_upstream(
    checkout: Path, jobs: Iterable[UpstreamJob], *, side_by_side: int = 1
) -> Iterator[UpstreamReply]:
    """The replies in order. Raises OSError when it cannot be started."""
    text = "".join(json.dumps(asdict(job)) + "\n" for job in jobs)
    command = [sys.executable, "-m", __name__, str(checkout), str(side_by_side)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate(text)
    for line in out.splitlines():
        if line.startswith("{"):
            yield UpstreamReply(**json.loads(line))


# --- in the process that imports the checkout


def main(argv: list[str]) -> int:
    """Answer the jobs of stdin."""
    checkout, side_by_side = Path(argv[1]), int(argv[2])
    evaluate = _upstream(checkout)
    jobs = [UpstreamJob(**json.loads(line)) for line in sys.stdin if line.strip()]
    waiting: list[tuple[UpstreamJob, int, int]] = []
    for job in jobs:
        waiting.append(_begin(evaluate, job))
        if len(waiting) >= side_by_side:
            _end(*waiting.pop(0))
    for one in waiting:
        _end(*one)
    return 0


def _upstream(checkout: Path) -> Any:
    """``kernelbench.eval``, with stand-ins for what is not installed and not needed."""
    sys.path.insert(0, str(checkout / "src"))
    for name in STANDINS:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = _StandIn(name)
            sys.stderr.write(f"{name} is not installed: an empty module stands in\n")
    with contextlib.suppress(ImportError):
        importlib.import_module("triton.language")
    # By name, so that nothing of ours depends on it.
    return importlib.import_module("kernelbench.eval")


class _StandIn(types.ModuleType):
    """A module in which every name is a function that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def _begin(upstream: Any, job: UpstreamJob) -> tuple[UpstreamJob, int, int]:
    """Fork a child for the job; (job, child's id, end of the pipe that it answers on)."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return job, child, ours
    os.close(ours)
    os.dup2(2, 1)  # what upstream prints is no reply
    reply = _evaluated(upstream, job)
    with os.fdopen(theirs, "w") as pipe:
        pipe.write(json.dumps(asdict(reply)))
    os._exit(0)


def _evaluated(upstream: Any, job: UpstreamJob) -> UpstreamReply:
    import torch

    try:
        result = upstream.eval_kernel_against_ref(
            job.original,
            job.custom,
            seed_num=job.seed,
            num_correct_trials=job.trials,
            measure_performance=False,
            device=torch.device("cuda:0"),
            backend=job.backend,
            precision=upstream.get_torch_dtype_from_string(job.precision),
        )
    except Exception as error:  # noqa: BLE001 - upstream's own failure is an answer as well
        traceback.print_exc()
        return UpstreamReply(job.id, None, f"eval raises {type(error).__name__}: {error}"[:300])
    if result is None:
        return UpstreamReply(job.id, None, "eval gave nothing (a lock file, it says)")
    return UpstreamReply(job.id, bool(result.correctness), _detail(result))


def _detail(result: Any) -> str:
    said = dict(result.metadata)
    names = ("correctness_issue", "runtime_error", "compilation_error", "max_difference")
    parts = [f"{name}: {said[name]}" for name in names if name in said]
    head = "" if result.compiled else "not compiled; "
    return (head + "; ".join(parts or [said.get("correctness_trials", "")]))[:300]


def _end(job: UpstreamJob, child: int, pipe: int) -> None:
    """Wait for a child, and pass its answer on; a child that died accepted nothing."""
    with os.fdopen(pipe) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if not text:
        died = os.waitstatus_to_exitcode(status)
        text = json.dumps(asdict(UpstreamReply(job.id, False, f"its process ended with {died}")))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
