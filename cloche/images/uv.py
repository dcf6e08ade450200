"""Python as uv builds it, by the machine's own uv: its mirrors and proxies hold here too."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from cloche.errors import ClocheError, EngineError, RuntimeNotFound
from cloche.images.runtimes import how_to_get
from cloche.images.sources import ELSEWHERE, SECONDS, Got, either, list_versions
from cloche.images.toolchains import ADDED_INSIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cloche.images.scratch import Scratch

BUILD = re.compile(r"cpython-(\d+\.\d+\.\d+\w*)-linux-[\w-]+", re.ASCII)
SOURCE = re.compile(r"`((?:https?|file)://[^`]+)`")
REASON = re.compile(r"^\s*(?:error|cause|Caused by): *(.+)$", re.MULTILINE)
UNREACHABLE = ("error sending request", "Request failed", "No such file or directory")
"""Words of uv's about a host, and about a mirror in a folder."""
LARGEST_TEXT_BYTES = 4 << 20


def get(version: str, scratch: Scratch, tell: Callable[[str], None]) -> Got:
    """A Python of that version (`3.12`: the newest such one), with pip.

    Raises: RuntimeNotFound, EngineError.
    """
    uv = shutil.which("uv") or shutil.which("uv", path=f"{sys.prefix}/bin")
    if uv is None:
        raise EngineError(
            f"uv is not installed, which fetches python {version}; {either('pip install uv', *_help(version))}"
        )
    tell(f"fetching python {version} with uv")
    builds = scratch.folder / "builds"
    done = _run(uv, ["python", "install", version], scratch, builds)
    if done.returncode:
        raise _explain(done.stderr, uv, version, scratch, builds)
    # Links beside it give the build other names.
    found = [folder for folder in builds.iterdir() if folder.is_dir() and not folder.is_symlink()]
    made = [(match[1], folder) for folder in found if (match := BUILD.fullmatch(folder.name))]
    if len(made) != 1:
        raise EngineError(f"uv made {[folder.name for folder in found]!r}; expected one CPython")
    full, tree = made[0]
    if not (tree / "bin" / f"python{'.'.join(full.split('.')[:2])}").exists():
        raise EngineError(f"the build {tree.name} has no bin/python")
    _relocate(tree, f"{ADDED_INSIDE}/python-{full}")
    return Got(f"python-{full}", tree)


def _run(uv: str, words: list[str], scratch: Scratch, builds: Path) -> subprocess.CompletedProcess[str]:
    # By variables: an older uv knows fewer options, and leaves out what it does not know.
    own = {"UV_PYTHON_INSTALL_DIR": str(builds), "UV_PYTHON_INSTALL_BIN": "0", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    try:
        return subprocess.run(
            [uv, *words],
            capture_output=True,
            timeout=SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            cwd=scratch.folder,
            env={**os.environ, **own},
            # As long as it writes there the folder is in use, should this process be killed.
            pass_fds=(scratch.lock,),
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"python: uv gave no answer in {SECONDS:g} s") from None


def _relocate(tree: Path, inside: str) -> None:
    """The build finds its library by itself; what compilers are told about it names the folder."""
    for folder, _, names in os.walk(tree):
        for name in names:
            path = f"{folder}/{name}"
            if os.path.islink(path) or os.path.getsize(path) > LARGEST_TEXT_BYTES:
                continue
            with open(path, "rb") as file:
                content = file.read()
            if b"\0" not in content and os.fsencode(tree) in content:
                with open(path, "wb") as file:
                    file.write(content.replace(os.fsencode(tree), os.fsencode(inside)))


def _explain(said: str, uv: str, version: str, scratch: Scratch, builds: Path) -> ClocheError:
    if "No download found" in said:
        listed = _run(uv, ["python", "list", "--only-downloads", "--all-versions"], scratch, builds).stdout
        there = {tuple(map(int, match.split("."))) for match in re.findall(r"cpython-(\d+\.\d+\.\d+)-", listed)}
        return RuntimeNotFound(f"there is no python {version} to add; there are {list_versions(there, version, 2)}")
    # The last cause is the first one that happened.
    reason = (REASON.findall(said) or [said.strip()[-200:] or "it did not say why"])[-1]
    source = SOURCE.search(said)
    tried = f", tried {source[1]}" if source else ""
    could_not = "its builds could not be reached" if any(word in said for word in UNREACHABLE) else "uv failed"
    return EngineError(
        f"python {version} could not be fetched: {could_not} ({reason}{tried}).\nWhat else helps: "
        + either("UV_PYTHON_INSTALL_MIRROR with the address of a mirror", *_help(version))
    )


def _help(version: str) -> tuple[str, ...]:
    return *how_to_get("python", version)[1:], "apt-get install python3", ELSEWHERE
