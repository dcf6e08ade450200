"""What holds a box is looked at from outside before it counts as made: a runtime may leave out what it was told."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cloche.engines.config import CPU_PERIOD_US, KEEPER_PIDS, keeper_capability_mask, socket_memory
from cloche.errors import EngineError

if TYPE_CHECKING:
    from cloche.engines.cgroups import BoxCgroup
    from cloche.models import Limits, SandboxSpec

NAMESPACES = ("pid", "mnt", "ipc", "uts", "user", "cgroup", "net")
LONGEST = 5.0


def verify_box(cgroup: BoxCgroup, spec: SandboxSpec, first_id: int) -> None:
    """Raises EngineError for the first thing that is not as it was asked for."""
    pid, status = _wait_for_keeper(cgroup)
    wanted = {
        "Uid": f"{first_id}",
        "Gid": f"{first_id}",
        "CapEff": f"{keeper_capability_mask(spec):016x}",
        "NoNewPrivs": "1",
    }
    for name, value in wanted.items():
        _compare(f"{name} of its first process", status[name].split()[0], value)
    # The keeper gives up at its start what no process of the box may have: earlier or later than this.
    surplus = int(status["CapBnd"], 16) & ~keeper_capability_mask(spec)
    _compare("capabilities beyond its bounds", f"{surplus:x}", "0")
    shared = [kind for kind in NAMESPACES if _namespace(pid, kind) == _namespace("self", kind)]
    _compare("namespaces that it shares with the host", ", ".join(shared), "")
    for name, (found, value) in _limits(cgroup, spec.limits).items():
        _compare(name, found, value)


def _compare(what: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise EngineError(f"the box is not as it should be, and was ended: {what}: {found!r}; expected {wanted!r}")


def _wait_for_keeper(cgroup: BoxCgroup) -> tuple[str, dict[str, str]]:
    """The number of the box's first process, once it has a filter and no new privileges: the last steps before it runs."""
    deadline = time.monotonic() + LONGEST
    status: dict[str, str] = {}
    while True:
        for pid in (cgroup.tree / "cgroup.procs").read_text().split():
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


def _limits(cgroup: BoxCgroup, limits: Limits) -> dict[str, tuple[str, str]]:
    """Each limit as the kernel has it, and as it was asked for."""
    memory, pids = str(limits.memory_mb << 20), str(limits.pids + KEEPER_PIDS)
    quota = int(limits.cpus * CPU_PERIOD_US)
    if cgroup.hierarchies.unified:
        files = {"memory.max": memory, "memory.swap.max": "0", "pids.max": pids, "cpu.max": f"{quota} {CPU_PERIOD_US}"}
        return {name: (_read(cgroup.tree / name), value) for name, value in files.items()}
    return {
        "memory.limit_in_bytes": (_read(cgroup.folder("memory") / "memory.limit_in_bytes"), memory),
        "memory.memsw.limit_in_bytes": (_read(cgroup.folder("memory") / "memory.memsw.limit_in_bytes"), memory),
        "memory.kmem.tcp.limit_in_bytes": (
            _read(cgroup.folder("memory") / "memory.kmem.tcp.limit_in_bytes"),
            str(socket_memory(limits)),
        ),
        "pids.max": (_read(cgroup.folder("pids") / "pids.max"), pids),
        "cpu.cfs_quota_us": (_read(cgroup.folder("cpu") / "cpu.cfs_quota_us"), str(quota)),
    }


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return "missing"
