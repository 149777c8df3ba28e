"""torch.utils.cpp_extension inside the sandbox: who builds what a kernel asks to have built.

``load_inline`` and ``load`` take half a minute, so nothing is built where the kernel runs. They ask
the referee, which has it built from the very texts in a process that never saw the kernel's Python,
and keeps the result under the hash of all that went in: no kernel can leave anything for another.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from verifier.conventions.errors import CompileError, EntryError, UnsupportedError

Request = dict[str, Any]
Build = Callable[[Request], bytes]
"""Gives the built library. Raises CompileError or UnsupportedError."""

ABSENT: Final = "C++ and CUDA extensions are built for a GPU, and there is none here"
_FLAGS: Final = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")


def _imported_blindly(name: str) -> Any:
    """A module whose import asks torch for a device, which is not to be had in processes that fork:
    torch lets no child of one that has asked use a GPU."""
    asks = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    try:
        return importlib.import_module(name)
    finally:
        torch.cuda.is_available = asks


cpp: Final = _imported_blindly("torch.utils.cpp_extension")
_REAL: Final[Mapping[str, Callable[..., Any]]] = {"load_inline": cpp.load_inline, "load": cpp.load}


def install(build: Build | None) -> None:
    """Replace both functions for good, in this process. Without ``build`` they say that they are
    not to be had here."""

    def load_inline(
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        functions: Any = None,
        **options: Any,
    ) -> Any:
        request = _request("load_inline", name, options)
        request["cpp_sources"] = _texts(cpp_sources)
        request["cuda_sources"] = _texts(cuda_sources or [])
        request["functions"] = functions
        for key in ("with_cuda", "no_implicit_headers"):
            request[key] = options.get(key)
        return _built(build, request, options)

    def load(name: str, sources: str | Sequence[str], *args: Any, **options: Any) -> Any:
        named = dict(zip(_FLAGS[:3], args, strict=False)) | options
        request = _request("load", name, named)
        request["files"] = {Path(path).name: Path(path).read_text() for path in _texts(sources)}
        request["with_cuda"] = named.get("with_cuda")
        return _built(build, request, named)

    replaced: Mapping[str, Any] = {"load_inline": load_inline, "load": load}
    for key, function in replaced.items():
        setattr(cpp, key, function)


def _request(how: str, name: str, options: Mapping[str, Any]) -> Request:
    if not isinstance(name, str) or not name.isidentifier():
        raise EntryError(f"{name!r} is no name for an extension")
    flags = {key: list(map(str, options.get(key) or ())) for key in _FLAGS}
    return {"how": how, "name": name, **flags}


def _texts(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else [str(text) for text in value]


def _built(build: Build | None, request: Request, options: Mapping[str, Any]) -> Any:
    if build is None:
        raise UnsupportedError(ABSENT)
    library = build(request)
    path = Path.cwd() / "built" / f"{request['name']}.so"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(library)
    if options.get("is_python_module", True):
        return _imported(request["name"], path)
    torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    return None


def _imported(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a file with a suffix
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# --- in the builder


def build_here(request: Request, folder: Path) -> bytes:
    """Really build, in a process of its own that holds nothing but these texts.

    Raises CompileError with the compiler's first error, UnsupportedError without a toolchain.
    """
    if cpp.CUDA_HOME is None:
        raise UnsupportedError("there is no nvcc on this machine, so extensions cannot be built")
    folder.mkdir(parents=True, exist_ok=True)
    common = {key: request[key] for key in _FLAGS} | {
        "name": request["name"],
        "build_directory": str(folder),
        "is_python_module": False,
        "with_cuda": request.get("with_cuda"),
        "verbose": False,
    }
    library = folder / f"{request['name']}.so"
    try:
        if request["how"] == "load_inline":
            inline = {key: request[key] for key in ("cpp_sources", "cuda_sources", "functions")}
            plain = bool(request.get("no_implicit_headers"))
            _REAL["load_inline"](**common, **inline, no_implicit_headers=plain)
        else:
            paths = [folder / Path(file).name for file in request["files"]]
            for path, text in zip(paths, request["files"].values(), strict=True):
                path.write_text(text)
            _REAL["load"](**common, sources=list(map(str, paths)))
    except Exception as error:  # noqa: BLE001 - whatever torch and ninja throw
        if not library.exists():
            raise CompileError(first_error(str(error))) from None
    return library.read_bytes()


def first_error(log: str) -> str:
    """The first line that names an error, of what ninja and the compilers print."""
    lines = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    told = [line for line in lines if not line.startswith(("Error building", "FAILED", "ninja:"))]
    return (told or lines or [log.strip() or "the build failed"])[0][:1000]
