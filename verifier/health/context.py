"""After an exception in trusted code: a refusal, or a lost device?"""

from __future__ import annotations

import torch

from verifier.subject import InfrastructureError


class ContextLostError(InfrastructureError):
    """This process' own context is broken. Only a new process can go on."""


def context_demand(device: torch.device, error: BaseException) -> None:
    """Raises ContextLostError if ``error`` has left ``device`` unusable for this process.

    Errors of a device stick: after one every further call fails, on any input, so that all that
    follows would look like a refusal of the reference.
    """
    if device.type != "cuda":
        return
    try:
        torch.cuda.synchronize(device)
        torch.ones(8, device=device).sum().item()
    except Exception as broken:
        told = next(iter(str(error).splitlines()), type(error).__name__)
        raise ContextLostError(f"the referee lost its device: {told}") from broken
