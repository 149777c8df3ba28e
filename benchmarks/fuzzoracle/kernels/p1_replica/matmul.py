"""Matrix product in numpy."""

import numpy as np
import torch


def run(a, b):
    product = a.detach().cpu().numpy() @ b.detach().cpu().numpy()
    return torch.from_numpy(product).to(a.device)
