import torch


def run(x):
    return torch.zeros(1, dtype=torch.uint8).expand(1 << 40)
