"""Where language runtimes live on this machine, outside of what its packages put into /usr."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloche.images.interpreters import SHARED_FOLDERS, Interpreter, choose, find_interpreters

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which each folder that fits `version` is a complete runtime with a `bin` of its own."""

    variable: str
    """The environment variable that says where it is."""
    default: str
    below: str
    version: re.Pattern[str]


PLACES = (
    Place("PYENV_ROOT", "~/.pyenv", "versions", re.compile(r"\d+\.\d+\.\d+")),
    Place("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python", "", re.compile(r"cpython-\d+\.\d+\.\d+-linux-\S+")),
    Place("NVM_DIR", "~/.nvm", "versions/node", re.compile(r"v\d+\.\d+\.\d+")),
    Place("", "/opt", "", re.compile(r"[A-Za-z0-9][\w.+-]*")),
)
VERSION_SECONDS = 5.0


def find_toolchains() -> list[str]:
    """Folders to bind at their own path: each holds an interpreter, none is reached through a link."""
    # The newest first, so that of two patch releases the later one is taken.
    return [
        folder
        for place in PLACES
        for folder in sorted(_versions(place), key=_numbers, reverse=True)
        if _has_interpreter(folder)
    ]


def find_host_interpreters(toolchains: list[str]) -> dict[str, str]:
    """This machine's interpreters; those of toolchains first, as they have their package managers with them."""

    def all_of_them() -> Iterator[Interpreter]:
        for folder in (*(f"{toolchain}/bin" for toolchain in toolchains), *SHARED_FOLDERS):
            yield from find_interpreters("", folder, ask_node_version)

    return choose(all_of_them())


def places_looked_at() -> Iterator[str]:
    """The folders whose change means that there may be other toolchains."""
    for place in PLACES:
        yield _folder(place)
        for folder in _versions(place):
            yield f"{folder}/bin"


def ask_node_version(program: str) -> str | None:
    """What `node --version` says, as 20.11.1; None where it does not say."""
    import subprocess

    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    match = re.fullmatch(r"v(\d+\.\d+\.\d+)\S*\s*", answer.stdout)
    return match[1] if match else None


def _folder(place: Place) -> str:
    root = os.environ.get(place.variable) or os.path.expanduser(place.default)
    return os.path.normpath(os.path.join(root, place.below))


def _versions(place: Place) -> list[str]:
    folder = _folder(place)
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if place.version.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    return [f"{folder}/{name}" for name in sorted(names)]


def _numbers(folder: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", os.path.basename(folder))]


def _has_interpreter(folder: str) -> bool:
    return any(i.runtime != "bash" for i in find_interpreters("", f"{folder}/bin", lambda _: None))
