"""Brings an audit that ran without the hub into it: one campaign, one run a kernel."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.text import slugify

from kernelhub.core import services
from kernelhub.core.choices import AuthorKind, ErrorKind
from kernelhub.core.models import Kernel, Node, Run, Task
from kernelhub.core.suites import KernelSource, TaskSource
from verifier import records

QUEUE: Final = "audit-record"
"""No node listens there: what is queued was judged already."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditSuite:
    """The tasks of a packed corpus as a suite of the hub. Its kernels come with their verdicts."""

    slug: str
    title: str
    documents: tuple[Document, ...]
    description: str = "Tasks of kernels that an audit found on disk."
    order: int = 900

    def tasks(self) -> Iterable[TaskSource]:
        return map(_task_source, self.documents)

    def corpus(self) -> Iterable[KernelSource]:
        return ()


def _task_source(document: Document) -> TaskSource:
    contract = json.loads(document["contract"])
    return TaskSource(
        slug=slugify(document["name"]),
        title=contract["title"],
        category=contract["category"],
        tags=tuple(contract.get("tags", ())),
        contract=contract,
        reference=document["reference"],
    )


class Command(BaseCommand):
    help = "Stores the results of an audit as a campaign; safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pack", type=Path, help="the packed corpus that was judged")
        parser.add_argument("results", type=Path, help="results.jsonl of the audit")
        parser.add_argument("--campaign", required=True, help="slug of the campaign")

    def handle(self, *args: Any, **options: Any) -> None:
        lines = list(_lines(options["pack"]))
        suite = AuditSuite(
            slug=slugify(f"audit-{options['campaign']}")[:60],
            title=f"Audit: {options['campaign']}",
            documents=tuple(line for line in lines if line["kind"] == "task"),
        )
        stored = services.suite_sync(suite).suite
        tasks = {task.slug: task for task in stored.tasks.filter(is_current=True)}
        sources = {line["key"]: line for line in lines if line["kind"] == "kernel"}
        rows = [row for row in _lines(options["results"]) if "key" in row]
        node = _node(rows)
        done = 0
        for row in rows:
            kernel = _kernel(tasks[slugify(row["task"])], sources[row["key"]])
            done += _record(node, kernel, row, options["campaign"])
        self.stdout.write(f"{options['campaign']}: {done} runs recorded")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield {"kind": "head"} | json.loads(line)
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {error}") from error


def _kernel(task: Task, line: Document) -> Kernel:
    return services.kernel_register(
        task=task,
        source=line["source"],
        entry=line["entry"],
        author_name=line["author"][:120],
        author_kind=AuthorKind.IMPORT.value,
        label=line["key"][-120:],
        group=line["corpus"][:60],
        claimed=line["claims"] or None,
        notes=line["origin"],
    )


def _record(node: Node, kernel: Kernel, row: Document, campaign: str) -> bool:
    """One run with its verdict or its error; False where the campaign has the kernel already."""
    if Run.objects.filter(kernel=kernel, campaign__slug=campaign).exists():
        return False
    _, runs = services.campaign_launch(
        slug=campaign, title=campaign, kernels=[kernel], queues=[QUEUE], seed=row["seed"]
    )
    verdict = _verdict(row, kernel)
    lease = services.run_claim(node=node, run_id=runs[0].pk)
    if lease is None:
        raise CommandError(f"{row['key']}: its run could not be claimed")
    if verdict is not None and not services.verdict_breakage(verdict):
        services.run_finish(run_id=lease.run.pk, attempt=lease.attempt, verdict=verdict)
        return True
    # A task error ends the run; so does ours, because the audit has tried twice by itself.
    message = services.verdict_breakage(verdict) if verdict is not None else row["error"]
    services.run_error(
        run_id=lease.run.pk, attempt=lease.attempt, kind=ErrorKind.TASK, message=message
    )
    return True


def _verdict(row: Document, kernel: Kernel) -> records.Verdict | None:
    """The row's verdict, with the source that the row leaves out."""
    if row["verdict"] is None:
        return None
    verdict = records.from_json(records.Verdict, row["verdict"])
    return replace(verdict, kernel=replace(verdict.kernel, source=kernel.source))


def _node(rows: Iterable[Document]) -> Node:
    """The row that stands for the machine of the audit."""
    found = next((row["verdict"]["environment"] for row in rows if row["verdict"]), None)
    if found is None:
        raise CommandError("the results hold no verdict, so nothing says where they are from")
    node, _ = Node.objects.get_or_create(name="audit")
    environment = records.from_json(records.Environment, found)
    return services.node_register(node=node, queue=QUEUE, environment=environment)
