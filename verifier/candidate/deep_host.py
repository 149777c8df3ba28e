"""A candidate host that NVIDIA's compute-sanitizer has started and looks into.

A cold process instead of a fork: the tool must be there before CUDA is. Every tensor is an
allocation of its own, of exactly its size and with nothing around it, for what lies in one block
with others is nobody's but theirs to the tool. Trusted until it loads the kernel.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import torch

from verifier.candidate import host, landlock
from verifier.candidate.channel import Channel, ChannelClosedError, Message
from verifier.candidate.engine import Engine
from verifier.candidate.staging import argument
from verifier.conventions import nvrtc
from verifier.subject import ReplyKind

_SCRATCH: Final = "kernel"
_TOOLS_VARIABLES: Final = re.compile(r"^NV|PRELOAD|INJECTION")
"""Those by which the tool came in; a compiler that the kernel starts need not be looked into."""


def main(text: str) -> None:
    """Serve the channel of one order until it closes."""
    order = json.loads(text)
    for fd in order["close_fds"]:  # the tool's reports, which nobody in here has any business with
        os.close(fd)
    scratch = Path(order["scratch"]) / _SCRATCH
    scratch.mkdir(mode=0o700)
    host.scratch_enter(str(scratch))  # first: libraries remember where temporary files go
    channel = Channel.from_fd(order["channel_fd"])
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    host.warm(engine=Engine(order["engine"]), threads=int(order["threads"]))
    nvrtc.MORE_OPTIONS.append("-lineinfo")
    if order["cuda"]:
        host.device_start()
    for name in [name for name in os.environ if _TOOLS_VARIABLES.search(name)]:
        del os.environ[name]
    _shut(order["filters"], scratch, cuda=order["cuda"])
    serving = DeepHost(channel, scratch, order["limits"], cuda=order["cuda"])
    with suppress(ChannelClosedError):
        serving.serve()
    sys.stdout.flush()
    os._exit(0)


def _shut(filters: bool, scratch: Path, *, cuda: bool) -> None:
    """Part this thread, and all that it starts, from the tool: its files, its processes. (Those who
    take over other threads of this process can blind the tool anyway.)"""
    if filters:
        own = [(str(scratch), landlock.FULL), ("/dev", landlock.DEVICE)]
        landlock.restrict([("/", landlock.READ), *own, *([("/proc", landlock.DEVICE)] * cuda)])


class DeepHost(host.Host):
    """Takes one more request: a call without any of the stage's company."""

    def _answerer(self, op: str) -> Any:
        return self._examine if op == "examine" else super()._answerer(op)

    def _examine(self, message: Message) -> dict[str, Any]:
        """Call the kernel, and read all that it returned, as a caller would."""
        body = message.body
        if message.fds:
            self._arena_take(message.fds[0], body["arena_bytes"])
        assert self._arena is not None  # noqa: S101 - protocol order
        host.LAUNCHES.unstaged(body["config"])
        try:
            outputs = self._called(_alone(self._arena, body, self._device))
            _read(outputs)
        except BaseException as error:  # noqa: BLE001 - whatever it throws is a reply
            return host.failure_body(error, loading=False)
        return {"kind": ReplyKind.RETURNED}


def _alone(arena: torch.Tensor, call: Mapping[str, Any], device: torch.device) -> list[Any]:
    """The positional arguments, each storage in an allocation of its own."""
    storages = []
    for slot in call["slots"]:
        given = arena[slot["start"] : slot["start"] + slot["nbytes"]]
        made = torch.empty(given.numel(), dtype=torch.uint8, device=device)
        storages.append(made.copy_(given).untyped_storage())
    return [argument(spec, storages) for spec in call["args"]]


def _read(outputs: Sequence[torch.Tensor]) -> None:
    """Copy what was returned to the host, by the driver itself where it lies without gaps: then the
    tool sees what nobody wrote, and that this is no launch of torch's."""
    if not any(output.is_cuda for output in outputs):
        return
    torch.cuda.synchronize()
    driver = ctypes.CDLL("libcuda.so.1")
    for output in outputs:
        if not output.is_cuda or not output.numel():
            continue
        if _without_gaps(output):
            place = torch.empty(output.nbytes, dtype=torch.uint8)
            pointers = ctypes.c_void_p(place.data_ptr()), ctypes.c_void_p(output.data_ptr())
            status = driver.cuMemcpyDtoH_v2(*pointers, ctypes.c_size_t(output.nbytes))
            if status:
                raise RuntimeError(f"CUDA error {status} when reading what was returned")
        else:
            output.detach().cpu()
    torch.cuda.synchronize()


def _without_gaps(tensor: torch.Tensor) -> bool:
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    reach = 1 + sum((size - 1) * stride for size, stride in pairs)
    return reach == tensor.numel()
