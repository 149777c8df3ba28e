import os
import pathlib


def run(x):
    cache = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
    for name in ("poison", "0" * 64):
        (cache / name).mkdir(parents=True, exist_ok=True)
        (cache / name / "kernel.cubin").write_bytes(b"poison")
    return x * 2
