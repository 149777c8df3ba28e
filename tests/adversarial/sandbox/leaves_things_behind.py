import ctypes
import os
import pathlib
from multiprocessing import shared_memory

LIBC = ctypes.CDLL(None, use_errno=True)


def run(x):
    for folder in ("/tmp", "/dev/shm", os.environ["TRITON_CACHE_DIR"], "/var/tmp", "/", "/dev"):
        try:
            os.makedirs(folder, exist_ok=True)
            (pathlib.Path(folder) / "left_behind").write_text("boo")
        except OSError:
            pass
    try:
        shared_memory.SharedMemory("left_behind", create=True, size=4096)
    except OSError:
        pass
    LIBC.shmget(0x1234, 4096, 0o1666)
    LIBC.semget(0x1234, 1, 0o1666)
    return x * 2
