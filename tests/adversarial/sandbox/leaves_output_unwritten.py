import torch


def run(x):
    y = torch.empty_like(x)
    y[:-1] = x[:-1] * 2
    return y
