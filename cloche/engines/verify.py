"""What holds a box is looked at from outside before it counts as made: a runtime may leave out what it was told."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cloche.engines.cgroups import limit_files
from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche.engines.cgroups import BoxCgroup
    from cloche.models import SandboxSpec

NAMESPACES = ("pid", "mnt", "ipc", "uts", "user", "cgroup", "net")
LONGEST = 5.0


class Keeper(NamedTuple):
    """What the first process of a box is to be, seen from outside."""

    uid: int
    gid: int
    capabilities: int


def verify_box(find: Callable[[], list[str]], cgroup: BoxCgroup, spec: SandboxSpec, keeper: Keeper) -> str:
    """The number of the first process, one of those that `find` gives.

    Raises: EngineError for the first thing that is not as it was asked for.
    """
    pid, status = _wait_for_keeper(find)
    wanted = {
        "Uid": f"{keeper.uid}",
        "Gid": f"{keeper.gid}",
        "CapEff": f"{keeper.capabilities:016x}",
        "NoNewPrivs": "1",
    }
    for name, value in wanted.items():
        _compare(f"{name} of its first process", status[name].split()[0], value)
    # The keeper gives up at its start what no process of the box may have: earlier or later than this.
    surplus = int(status["CapBnd"], 16) & ~keeper.capabilities
    _compare("capabilities beyond its bounds", f"{surplus:x}", "0")
    shared = [kind for kind in NAMESPACES if _namespace(pid, kind) == _namespace("self", kind)]
    _compare("namespaces that it shares with the host", ", ".join(shared), "")
    for (controller, name), value in limit_files(cgroup.hierarchies, spec.limits).items():
        _compare(name, _read(cgroup.folder(controller) / name), value)
    return pid


def _compare(what: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise EngineError(f"the box is not as it should be, and was ended: {what}: {found!r}; expected {wanted!r}")


def _wait_for_keeper(find: Callable[[], list[str]]) -> tuple[str, dict[str, str]]:
    """The number of the box's first process, once it has a filter and no new privileges: the last steps before it runs."""
    deadline = time.monotonic() + LONGEST
    status: dict[str, str] = {}
    while True:
        for pid in find():
            status = _read_status(pid)
            if status.get("NSpid", "").split()[-1:] == ["1"] and status["Seccomp"] == "2":
                return pid, status
        if time.monotonic() > deadline:
            found = f"Seccomp {status['Seccomp']}" if "Seccomp" in status else "no process"
            raise EngineError(f"the box is not as it should be, and was ended: {found}; a filtered keeper was expected")
        time.sleep(0.0002)


def _read_status(pid: str) -> dict[str, str]:
    try:
        text = Path("/proc", pid, "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def _namespace(pid: str, kind: str) -> int:
    return os.stat(f"/proc/{pid}/ns/{kind}").st_ino


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return "missing"
