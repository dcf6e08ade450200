"""What of a box is on this machine, looked for where an engine leaves things."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.engines.cgroups import choose_mounts
from cloche.engines.mountinfo import read_mounts
from cloche.engines.oci import RUN
from cloche.engines.rootless import is_about, mark_of, run_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS: Final = 5.0
"""The kernel may need a moment to forget what has just ended."""


def traces_of(id: str) -> list[str]:
    """Processes, cgroups, mounts, loop devices and files that bear a box's name."""
    return [*_processes(id), *_cgroups(id), *_mounts(id), *_loop_devices(id), *_files(id)]


def wait_until_gone(find: Callable[[], list[str]]) -> list[str]:
    """What is found after that moment."""
    deadline = time.monotonic() + SECONDS
    while found := find():
        if time.monotonic() > deadline:
            return found
        time.sleep(0.01)
    return []


def marked_processes(mark: str) -> list[int]:
    """Those with that word on their command line, but this one."""
    return [pid for pid, words in _command_lines() if mark in words]


def _command_lines() -> Iterator[tuple[int, list[str]]]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if int(name) != os.getpid():
                yield int(name), Path("/proc", name, "cmdline").read_bytes().decode(errors="replace").split("\0")


def _processes(id: str) -> Iterator[str]:
    mark = mark_of(id)
    yield from (f"process {pid}" for pid, words in _command_lines() if is_about(words, id, mark))


def _cgroups(id: str) -> Iterator[str]:
    v1, v2 = choose_mounts(read_mounts())
    for mount in {*v1.values(), *([v2] if v2 else [])}:
        # Some folder of Cloche's, at the top or below what was delegated to a user.
        for folder in (*mount.glob(f"cloche*/{id}"), *mount.glob(f"*/*/*/cloche*/{id}")):
            yield f"cgroup {folder}"


def _mounts(id: str) -> Iterator[str]:
    for row in read_mounts():
        if any(id in word for word in (row.root, row.path, *row.settings)):
            yield f"mount {row.path}"


def _loop_devices(id: str) -> Iterator[str]:
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            if id in backing.read_text():
                yield f"loop device {backing.parts[3]}"


def _files(id: str) -> Iterator[str]:
    run = RUN if os.geteuid() == 0 else run_folder()
    places = [settings.home() / "boxes" / id, *run.glob(f"*/{id}")]
    yield from (str(path) for path in places if path.exists())
    with suppress(FileNotFoundError):
        for lease in (run / "ids").iterdir():
            with suppress(OSError):
                if os.readlink(lease) == id:
                    yield f"ids in {lease}"
