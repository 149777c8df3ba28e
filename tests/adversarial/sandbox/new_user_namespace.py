import ctypes

LIBC = ctypes.CDLL(None, use_errno=True)


def run(x):
    if LIBC.unshare(0x10000000) == 0:
        print("UNSHARED")
    if LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
        print("MOUNTED")
    return x * 2
