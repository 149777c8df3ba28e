import os


def run(x):
    os.closerange(0, 4096)
    return x * 2
