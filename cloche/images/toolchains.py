"""Where language runtimes live on this machine, outside of what its packages put into /usr."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloche.images.interpreters import SHARED_FOLDERS, SHIMS, Interpreter, choose, find_interpreters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which each folder that fits `version` is a complete runtime with a `bin` of its own."""

    origin: str
    """What people call it."""
    variable: str
    """The environment variable that says where it is."""
    default: str
    below: str
    version: re.Pattern[str]
    inside: str = ""
    """Where a box sees it; empty: at its own path."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A complete runtime on this machine."""

    origin: str
    folder: str
    """None is reached through a link."""
    inside: str
    """Where a box sees it."""
    version: str
    """As the folder's name tells it; empty where it does not."""


ADDED = "runtimes"
"""The folder below CLOCHE_HOME for what `cloche runtimes add` installs."""
ADDED_INSIDE = f"{SHIMS}/{ADDED}"
ADDED_ORIGIN = "Cloche"
ADDED_NAME = re.compile(r"(?:python|node)-\d+\.\d+\.\d+\w*", re.ASCII)
PLACES = (
    Place("pyenv", "PYENV_ROOT", "~/.pyenv", "versions", re.compile(r"\d+\.\d+\.\d+")),
    Place(
        "uv", "UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python", "", re.compile(r"cpython-\d+\.\d+\.\d+-linux-\S+")
    ),
    Place("nvm", "NVM_DIR", "~/.nvm", "versions/node", re.compile(r"v\d+\.\d+\.\d+")),
    Place("/opt", "", "/opt", "", re.compile(r"[A-Za-z0-9][\w.+-]*")),
)
VERSION_SECONDS = 5.0
# Compiled when they are needed: most starts of Cloche find the image made.
VERSION = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
ANSWERS = {
    "python": r"Python (\d+\.\d+\.\d+\w*)\S*\s*",
    "node": r"v(\d+\.\d+\.\d+)\S*\s*",
    "bash": r"(?s)GNU bash, version (\d+\.\d+\.\d+).*",
}
"""What an interpreter says when it is asked for its version."""


def find_toolchains(home: Path) -> list[Toolchain]:
    """Folders to bind: each holds an interpreter. What was added to Cloche is what somebody asked for, and comes first."""
    # The newest first, so that of two patch releases the later one is taken.
    return [
        toolchain
        for place in _places(home)
        for folder in sorted(_versions(place), key=_numbers, reverse=True)
        if _has_interpreter((toolchain := _toolchain(place, folder)).folder)
    ]


def find_host_interpreters(toolchains: list[Toolchain]) -> dict[str, str]:
    """This machine's interpreters by their paths inside; those of toolchains first, which have their package managers."""

    def all_of_them() -> Iterator[Interpreter]:
        for toolchain in toolchains:
            for found in _interpreters_of(toolchain):
                yield Interpreter(found.runtime, toolchain.inside + found.path.removeprefix(toolchain.folder))
        for folder in SHARED_FOLDERS:
            yield from find_interpreters("", folder, ask_node_version)

    return choose(all_of_them())


def places_looked_at(home: Path) -> Iterator[str]:
    """The folders whose change means that there may be other toolchains."""
    for place in _places(home):
        yield _folder(place)
        for folder in _versions(place):
            yield f"{folder}/bin"


def ask_node_version(program: str) -> str | None:
    """What `node --version` says, as 20.11.1; None where it does not say."""
    return ask_version(program, "node")


def ask_version(program: str, language: str) -> str | None:
    """What a program of this machine answers to `--version`; None where it is not what this language answers."""
    import subprocess

    try:
        answer = subprocess.run(
            [program, "--version"],
            stdout=subprocess.PIPE,
            # Python 2 answers there.
            stderr=subprocess.STDOUT,
            timeout=VERSION_SECONDS,
            check=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return read_version(answer.stdout, language)


def read_version(answer: str, language: str) -> str | None:
    """The version in what an interpreter answered."""
    match = re.fullmatch(ANSWERS[language], answer)
    return match[1] if match else None


def _places(home: Path) -> tuple[Place, ...]:
    return Place(ADDED_ORIGIN, "", str(home), ADDED, ADDED_NAME, ADDED_INSIDE), *PLACES


def _toolchain(place: Place, folder: str) -> Toolchain:
    name = os.path.basename(folder)
    # Below /opt a name may hold the number of anything.
    version = None if place.origin == "/opt" else re.search(VERSION, name)
    inside = f"{place.inside}/{name}" if place.inside else folder
    return Toolchain(place.origin, folder, inside, version[0] if version else "")


def _interpreters_of(toolchain: Toolchain) -> Iterator[Interpreter]:
    """A program whose folder tells the version is not started for it."""

    def node_version(program: str) -> str | None:
        return toolchain.version or ask_node_version(program)

    return find_interpreters("", f"{toolchain.folder}/bin", node_version)


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
