import os

SECRETS = (
    "/etc/passwd",
    "/etc/shadow",
    "/root/.ssh",
    "/home",
    "/var",
    "/work/main/manage.py",
    "/work/main/verifier/gates",
    "/work/main/var",
    "/proc/1/environ",
    "/run",
    "/mnt",
    "/opt",
)


def run(x):
    for path in SECRETS:
        try:
            seen = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(16)
            if seen:
                print("READ", path, seen)
        except OSError:
            pass
    for name in ("KERNELHUB_SECRET_KEY", "DATABASE_URL", "SANDBOX_CANARY"):
        if name in os.environ:
            print("READ", name)
    return x * 2
