# The kernel after it: reports everything that somebody could have left behind.
import glob
import os


def run(x):
    own = {os.getcwd() + "/kernel.py"}
    found = set(glob.glob("/tmp/**", recursive=True)) | set(
        glob.glob("/dev/shm/**", recursive=True)
    )
    found |= set(glob.glob("/**/left_behind"))
    print(sorted(f for f in found if os.path.isfile(f) and f not in own))
    for name in ("shm", "sem", "msg"):
        try:
            print(open(f"/proc/sysvipc/{name}").read().splitlines()[1:])
        except OSError:
            print([])
    print(sorted(name for name in os.environ if name == "LEFT_BEHIND"))
    return x * 2
