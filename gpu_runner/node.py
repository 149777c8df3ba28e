"""The agent as a Celery worker: the broker wakes it, the hub gives it its runs.

One process per device, as many jobs at a time as it has workers. A message is only a hint that
something waits; the lease decides who judges what, so a lost, doubled or late message does no harm.
The pool is of threads because the agent's own threads share its verifiers, and because every
kernel runs in another process anyway; should the consumer hang on a broken broker connection (a
known weakness of that pool), the agent still finds its runs by polling the hub.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

from celery import Celery, signals
from celery.worker import state as worker_state

from gpu_runner.agent import Agent
from gpu_runner.protocol import JOB_NAME

log = logging.getLogger(__name__)

_worker: Any = worker_state
"""Celery's word to itself that it should stop; untyped there."""


def node_app(broker_url: str) -> Celery:
    """A Celery application that loads no Django, whatever the environment names."""
    app = Celery("kernelhub-node", broker=broker_url, fixups=[])
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"visibility_timeout": 7200, "socket_connect_timeout": 5},
    )
    return app


def agent_run(agent: Agent) -> None:
    """Serves until SIGTERM or SIGINT; without a broker address, by polling alone."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # Before anything can be leased; a Celery worker puts handlers of its own above these.
        signal.signal(number, lambda *_: agent.stop())
    thread = threading.Thread(target=_serve, args=(agent,), name="agent")
    thread.start()
    try:
        if agent.config.broker_url:
            _consume(agent)
        else:
            _await(thread)
    finally:
        agent.stop()
        _await(thread)


def _serve(agent: Agent) -> None:
    """The agent's own loop. A signal that came while Celery was starting, before its handlers were
    there, has stopped the agent alone: the worker then stops as soon as it looks."""
    try:
        agent.serve()
    finally:
        _worker.should_stop = os.EX_OK


def _await(thread: threading.Thread) -> None:
    """Waits in short turns: a signal may reach another thread, and its handler runs in this one."""
    while thread.is_alive():
        thread.join(timeout=0.5)


def _consume(agent: Agent) -> None:
    app = node_app(agent.config.broker_url)

    @app.task(name=JOB_NAME)
    def take(run_id: str) -> None:
        log.debug("woken by run %s", run_id)
        agent.take()

    def stop(**_: Any) -> None:
        agent.stop()

    signals.worker_shutting_down.connect(stop, weak=False)
    app.worker_main(
        [
            *("worker", "--pool", "threads", "--queues", agent.queue),
            *("--concurrency", str(len(agent.workers))),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            *("--loglevel", "WARNING", "--hostname", f"{agent.config.scratch.name}@%h"),
        ]
    )
