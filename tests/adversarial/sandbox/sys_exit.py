import sys


def run(x):
    sys.exit(0)
