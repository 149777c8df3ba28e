import os

import numpy
import torch


def run(x):
    torch.manual_seed(1)
    numpy.random.seed(1)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    os.environ["LEFT_BEHIND"] = "1"
    os.chdir("/")
    return x * 2
