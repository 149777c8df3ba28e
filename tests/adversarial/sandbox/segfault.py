import ctypes


def run(x):
    ctypes.string_at(0)
