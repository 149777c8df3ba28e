"""What the hub knows of the device: told once, and again only when it changes."""

from __future__ import annotations

import logging
import threading

from gpu_runner.hub import Hub
from gpu_runner.protocol import Registration
from gpu_runner.standing import Standing
from gpu_runner.verifier_process import VerifierError
from verifier import records

log = logging.getLogger(__name__)


class Registry:
    """Shared by the workers. Only the first registration says that the agent started afresh: later
    ones would take the leases of the other workers back."""

    def __init__(self, hub: Hub, queue: str, standing: Standing) -> None:
        self.heartbeat_s = 2.0
        self._hub = hub
        self._queue = queue
        self._standing = standing
        self._known: records.Environment | None = None
        self._lock = threading.Lock()

    @property
    def registered(self) -> bool:
        return self._known is not None

    def register(self, environment: records.Environment) -> None:
        """Raises VerifierError for a verifier of another mode than the queue, and the hub's own."""
        if (environment.mode is records.DeviceMode.CUDA) != self._queue.startswith("sm"):
            # Runs that ask for a GPU must not be judged by an interpreter in its place.
            raise VerifierError(
                f"queue {self._queue} is served, but the verifier runs in mode {environment.mode}"
            )
        with self._lock:
            if environment != self._known:
                self._tell(environment)

    def _tell(self, environment: records.Environment) -> None:
        afresh = self._known is None
        welcome = self._hub.register(Registration(self._queue, environment, afresh))
        self._known = environment
        self.heartbeat_s = float(welcome.heartbeat_s)
        log.info("node %s serves %s on %s", welcome.node, self._queue, environment.device_name)
        if not welcome.in_service:
            self._standing.out_already()
