import os
import sys

BLOCK = b"x" * (1 << 20)


def run(x):
    print("the beginning")
    sys.stdout.flush()
    for _ in range(1024):
        os.write(1, BLOCK)
    print("the end")
    return x * 2
