import torch


class Lazy(torch.Tensor):
    """Looks like a tensor, and could compute its values when somebody looks."""


def run(x):
    return (x * 2).as_subclass(Lazy)
