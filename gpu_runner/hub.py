"""The node's way to the hub: HTTP with a node token, and nothing else."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx

from gpu_runner import protocol
from gpu_runner.protocol import LeasedRun, Receipt, Registration, Standing, TaskFolder, Welcome
from verifier import records

Message = TypeVar("Message")

TIMEOUT: Final = httpx.Timeout(20.0, connect=5.0)


class HubUnreachableError(Exception):
    """No answer, or a failure of the hub's own; asking again later may help."""


class HubRefusedError(Exception):
    """The hub understood and refused; asking again does not help."""


class LeaseLostError(HubRefusedError):
    """409: the run no longer belongs to this attempt."""


class Hub:
    """One method a message; each raises HubUnreachableError or HubRefusedError."""

    def __init__(
        self, url: str, token: str, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._client = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/node/v1/",
            headers={
                "Authorization": f"Bearer {token}",
                "Accept": "application/json",
                "Content-Type": "application/json",
            },
            timeout=TIMEOUT,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def register(self, registration: Registration) -> Welcome:
        return _read(Welcome, self._post("register/", registration))

    def health(self, notice: protocol.HealthNotice) -> Standing:
        return _read(Standing, self._post("health/", notice))

    def goodbye(self, *, timeout_s: float) -> None:
        self._post("goodbye/", {}, timeout_s=timeout_s)

    def lease(self, run: str | None = None) -> LeasedRun | None:
        response = self._post("lease/", protocol.LeaseRequest(run))
        return (
            None if response.status_code == httpx.codes.NO_CONTENT else _read(LeasedRun, response)
        )

    def task(self, leased: LeasedRun) -> TaskFolder:
        return _read(TaskFolder, self._ask("GET", f"runs/{leased.run}/task/{leased.attempt}/"))

    def heartbeat(self, leased: LeasedRun) -> Receipt:
        message = protocol.Heartbeat(leased.attempt)
        return _read(Receipt, self._post(f"runs/{leased.run}/heartbeat/", message))

    def events(
        self, leased: LeasedRun, first: int, lines: tuple[protocol.EventLine, ...]
    ) -> Receipt:
        batch = protocol.EventBatch(leased.attempt, first, lines)
        return _read(Receipt, self._post(f"runs/{leased.run}/events/", batch))

    def verdict(self, leased: LeasedRun, document: dict[str, Any]) -> None:
        report = protocol.VerdictReport(leased.attempt, document)
        self._post(f"runs/{leased.run}/verdict/", report)

    def fault(self, leased: LeasedRun, kind: protocol.FaultKind, message: str) -> None:
        report = protocol.FaultReport(leased.attempt, kind, message)
        self._post(f"runs/{leased.run}/error/", report)

    def release(self, leased: LeasedRun, reason: str, *, timeout_s: float) -> None:
        message = protocol.Release(leased.attempt, reason)
        self._post(f"runs/{leased.run}/release/", message, timeout_s=timeout_s)

    def _post(self, path: str, message: Any, *, timeout_s: float | None = None) -> httpx.Response:
        # All in ASCII: what a kernel prints may hold surrogates, which UTF-8 cannot carry.
        content = json.dumps(records.to_json(message), allow_nan=False).encode("ascii")
        return self._ask("POST", path, content=content, timeout_s=timeout_s)

    def _ask(
        self, method: str, path: str, *, content: bytes = b"", timeout_s: float | None = None
    ) -> httpx.Response:
        timeout = TIMEOUT if timeout_s is None else httpx.Timeout(timeout_s)
        try:
            response = self._client.request(method, path, content=content, timeout=timeout)
        except httpx.HTTPError as error:
            raise HubUnreachableError(f"{path}: {error or type(error).__name__}") from error
        return _checked(response)


def _checked(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    reason = f"{response.request.url.path}: {response.status_code} {_detail(response)}"
    if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise HubUnreachableError(reason)
    if response.status_code == httpx.codes.CONFLICT:
        raise LeaseLostError(reason)
    raise HubRefusedError(reason)


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]


def _read(kind: type[Message], response: httpx.Response) -> Message:
    try:
        return records.from_json(kind, response.json())
    except ValueError as error:
        raise HubRefusedError(f"unexpected answer: {error}") from error
