import torch


def run(x):
    hoard = []
    while True:
        hoard.append(torch.ones(1 << 22))
