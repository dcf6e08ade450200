"""Interpreters in a folder of programs, and the shims that make each one answer to its usual names."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloche.images.runtimes import preference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SHIMS = "/opt/cloche"
SHARED_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders that hold other things too, so that putting one first in PATH would choose more than an interpreter."""
PYTHON = re.compile(r"python(\d+\.\d+)")
NODE_NAMES = ("node", "npm", "npx", "corepack")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`runtime` is its name with version, `path` where it is inside the image."""

    runtime: str
    path: str


def find_interpreters(root: str, folder: str, node_version: Callable[[str], str | None]) -> Iterator[Interpreter]:
    """Those in `folder` of the root file system at `root` ("" is this machine's own)."""
    try:
        names = sorted(os.listdir(root + folder))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for name in names:
        path = posixpath.join(folder, name)
        runtime = _runtime_of(root, path, node_version)
        if runtime is not None:
            yield Interpreter(runtime, path)


def _runtime_of(root: str, path: str, node_version: Callable[[str], str | None]) -> str | None:
    name = posixpath.basename(path)
    python = PYTHON.fullmatch(name)
    if not (python or name in ("bash", "node")) or not _is_program(root + path):
        return None
    if python:
        return f"python{python[1]}"
    if name == "bash":
        return name
    version = node_version(root + path)
    return f"node{version.split('.')[0]}" if version else "node"


def choose(interpreters: Iterable[Interpreter]) -> dict[str, str]:
    """The first one of each runtime, in the order in which a person would want them."""
    found: dict[str, str] = {}
    for interpreter in interpreters:
        found.setdefault(interpreter.runtime, interpreter.path)
    return dict(sorted(found.items(), key=lambda item: preference(item[0])))


def add_shims(interpreters: dict[str, str], *, seen_from: str, root: str) -> dict[str, str]:
    """The interpreters by the paths to call them by, after the shims for them were written below `root`.

    `seen_from` is the root file system in which the interpreters are looked at.
    """
    return {
        runtime: _add_shim(runtime, path, seen_from, root) if _needs_shim(runtime, path, seen_from) else path
        for runtime, path in interpreters.items()
    }


def _needs_shim(runtime: str, path: str, seen_from: str) -> bool:
    folder = posixpath.dirname(path)
    if runtime == "bash" or path.startswith(f"{SHIMS}/"):
        # What Cloche puts there is complete.
        return False
    if folder in SHARED_FOLDERS:
        return True
    names = (*_python_names(path), "pip") if runtime.startswith("python") else ()
    return not all(_is_program(f"{seen_from}{folder}/{name}") for name in names)


def _python_names(path: str) -> tuple[str, ...]:
    """`python`, `python3` and `python3.12`, for the path of a `python3.12`."""
    name = posixpath.basename(path)
    return "python", name.split(".")[0], name


def _add_shim(runtime: str, path: str, seen_from: str, root: str) -> str:
    shims = f"{SHIMS}/{runtime}"
    os.makedirs(root + shims, mode=0o755, exist_ok=True)
    if runtime.startswith("python"):
        for name in _python_names(path):
            os.symlink(path, f"{root}{shims}/{name}")
        for name in ("pip", "pip3"):
            _write_program(f"{root}{shims}/{name}", f'#!/bin/sh\nexec {path} -m pip "$@"\n')
        return f"{shims}/python"
    folder = posixpath.dirname(path)
    for name in NODE_NAMES:
        if _is_program(f"{seen_from}{folder}/{name}"):
            os.symlink(f"{folder}/{name}", f"{root}{shims}/{name}")
    return f"{shims}/node"


def _write_program(path: str, text: str) -> None:
    with open(path, "x", encoding="ascii") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o755)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
