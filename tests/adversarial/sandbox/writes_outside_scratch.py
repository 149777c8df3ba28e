import os
import pathlib

TARGETS = (
    "/evil",
    "/usr/evil",
    "/etc/evil",
    "/dev/evil",
    "/kernelhub/evil",
    "/proc/sys/kernel/core_pattern",
)


def run(x):
    import torch

    folder = pathlib.Path(torch.__file__).parent
    for target in (*TARGETS, str(folder / "evil.py"), str(folder / "__init__.py")):
        try:
            with open(target, "a") as file:
                file.write("# evil\n")
            print("WROTE", target)
        except OSError:
            pass
    return x * 2
