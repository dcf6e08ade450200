"""Node.js in its versions, from npm, kept in the cache folder of the tree."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".cache" / "nodes"
VERSIONS = (18, 20, 22, 24)
ARCHITECTURE = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]


def node(version: int) -> str:
    """The path of a program of that version, which is fetched when it is first asked for."""
    program = CACHE / f"node-{version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _fetch(version, program)
    return str(program)


def _fetch(version: int, program: Path) -> None:
    folder = CACHE / f"fetched-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = ["npm", "pack", "--silent", f"node-linux-{ARCHITECTURE}@{version}"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as opened, (folder / "node").open("wb") as copy:
        member = opened.extractfile("package/bin/node")
        assert member is not None
        shutil.copyfileobj(member, copy)
    (folder / "node").chmod(0o755)
    os.replace(folder / "node", program)
    shutil.rmtree(folder)
