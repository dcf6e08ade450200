"""Runtimes that were added to Cloche's own folder, beside those that the machine has anyway."""

from __future__ import annotations

import errno
import os
import re
from importlib import import_module
from typing import TYPE_CHECKING

from cloche.errors import EngineError, InvalidRequest, RuntimeNotFound
from cloche.images.inventory import Listed, list_host_runtimes
from cloche.images.runtimes import DEFAULT_VERSIONS, PARTS, WHAT_IS_A_NAME, how_to_get, read_name, text
from cloche.images.scratch import make_scratch
from cloche.images.toolchains import ADDED, ADDED_INSIDE, ADDED_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCES = {"node": "npm", "python": "uv"}
"""The file beside this one that fetches a language."""


def add_runtime(home: Path, name: str, tell: Callable[[str], None]) -> tuple[Listed, bool]:
    """The runtime, and True where it was not there before; `tell` hears what is being done.

    Raises: RuntimeNotFound, InvalidRequest, EngineError.
    """
    language, asked = _read(name)
    version = asked or text(DEFAULT_VERSIONS[language])
    if there := _find(home, language, version):
        return there, False
    if language not in SOURCES:
        raise RuntimeNotFound(f"{language} can't be added by Cloche; {', or '.join(how_to_get(language))}")
    _refuse_older(home, f"{language}-{version}")
    source = import_module(f"cloche.images.{SOURCES[language]}")
    try:
        with make_scratch(home) as scratch:
            got = source.get(version, scratch, tell)
            # Once more: another process may have been faster.
            _refuse_older(home, got.name)
            _open_to_all(got.folder)
            is_new = _put(got.folder, home / ADDED / got.name)
    except EngineError as error:
        raise EngineError(error.message + _others(home, language)) from error
    except OSError as error:
        raise EngineError(f"{language} {version} could not be added: {error}") from error
    added = _find(home, *got.name.split("-"))
    if added is None:
        raise EngineError(f"{got.name} was added to {home / ADDED} and is not found there; remove it and try again")
    return added, is_new


def find_added(home: Path, name: str) -> str:
    """The folder's name of the one that `name` (`node 22`, `node-22.11.0`) means.

    Raises: RuntimeNotFound, InvalidRequest.
    """
    language, version = _read(name)
    matching = [each for each in added_names(home) if _is(each, language, version)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InvalidRequest(f"{name!r} is any of {', '.join(matching)}; give the whole version")
    if there := _find(home, language, version):
        raise InvalidRequest(
            f"{there.runtime} {there.version} is not Cloche's to remove: it comes from {there.origin}, {there.path}"
        )
    own = ", ".join(added_names(home)) or "nothing"
    raise RuntimeNotFound(f"there is no {f'{language} {version}'.strip()}; what was added is: {own}")


def remove_added(home: Path, name: str) -> None:
    """Removes the folder of that name; the caller knows that no box runs on it.

    Raises: EngineError.
    """
    try:
        with make_scratch(home) as scratch:
            # Out of sight as one step: what is half removed must not be found.
            (home / ADDED / name).rename(scratch.folder / name)
    except OSError as error:
        raise EngineError(f"{name} could not be removed: {error}") from error


def added_names(home: Path) -> list[str]:
    """Language and full version of each."""
    try:
        return sorted(name for name in os.listdir(home / ADDED) if ADDED_NAME.fullmatch(name))
    except FileNotFoundError:
        return []


def inside(name: str) -> str:
    """Where a box sees it."""
    return f"{ADDED_INSIDE}/{name}"


def _read(name: str) -> tuple[str, str]:
    wanted = read_name(name)
    if wanted is None:
        raise RuntimeNotFound(f"{name!r} names no runtime. {WHAT_IS_A_NAME}")
    return wanted


def _find(home: Path, language: str, version: str) -> Listed | None:
    """Of this machine, as the host image has it."""
    there = list_host_runtimes(home)
    return next((each for each in there if _is(f"{each.language}-{each.version}", language, version)), None)


def _others(home: Path, language: str) -> str:
    there = [each.runtime for each in list_host_runtimes(home) if each.language == language]
    return f".\nThis machine has {', '.join(there)}" if there else ""


def _is(name: str, language: str, version: str) -> bool:
    """`node-22.11.0` is 22, 22.11 and 22.11.0, and not 2."""
    return f"{name}.".startswith(f"{language}-{version}." if version else f"{language}-")


def _refuse_older(home: Path, name: str) -> None:
    """Of two that have the same name the newer one is used; of `name` the last numbers may be open."""
    language, version = name.split("-")
    wanted = _numbers(version)
    for other in added_names(home):
        found = _numbers(other)
        if (
            other.startswith(f"{language}-")
            and found[: PARTS[language]] == wanted[: PARTS[language]]
            and found[: len(wanted)] > wanted
        ):
            raise InvalidRequest(
                f"{other} was added already and is newer, so {name} would never be used; "
                f"remove that one first: cloche runtimes remove {other}"
            )


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _open_to_all(tree: Path) -> None:
    """The same modes whatever the umask: a box's users are nobody here, and read what everyone may read."""
    for folder, _, files in os.walk(tree):
        os.chmod(folder, 0o755)
        for name in files:
            path = f"{folder}/{name}"
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o111 else 0o644)


def _put(tree: Path, folder: Path) -> bool:
    """False where another one was quicker, with the same."""
    folder.parent.mkdir(mode=0o755, exist_ok=True)
    try:
        tree.rename(folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False
    return True
