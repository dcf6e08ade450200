"""The hardened OCI config.json, built whole: the same for every OCI runtime."""

from __future__ import annotations

import os
import resource
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cloche.engines.seccomp import make_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloche.models import Limits, SandboxSpec

IDS = 65_536
USER, TERMINALS = 1000, 5
# Processes that the box's limit does not count: the keeper and its helpers.
KEEPER_PIDS = 80
KEEPER_CAPABILITIES = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SETPCAP": 8}
# What package managers need when they run as root of the box's own user namespace.
ROOT_CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
}
CPU_PERIOD_US = 100_000

MASKED = """
acpi asound config.gz cmdline diskstats driver dynamic_debug interrupts iomem ioports kallsyms kcore key-users keys
kmsg kpagecgroup kpagecount kpageflags latency_stats modules mtrr pagetypeinfo partitions sched_debug scsi slabinfo
swaps sysrq-trigger sys/kernel/random/boot_id timer_list timer_stats vmallocinfo
""".split()
READ_ONLY = ("bus", "fs", "irq", "sys")


class UserNamespace(NamedTuple):
    """The users of a box."""

    ids: tuple[tuple[int, int, int], ...]
    """Inside, outside, how many: for users and for groups."""
    path: str | None = None
    """Where it is; None: the runtime is to make it."""

    @property
    def keeper(self) -> int:
        """Who the first process is inside: root, where there is one."""
        return 0 if self.knows(0) else USER

    def knows(self, inside: int) -> bool:
        """True where that id is somebody."""
        return any(first <= inside < first + count for first, _, count in self.ids)


def make_config(
    spec: SandboxSpec, *, root: str, users: UserNamespace, keeper_argv: Sequence[str], cgroup: str | None
) -> dict[str, Any]:
    """A config.json for one box, whose root file system is complete but for /proc and /dev.

    Without a `cgroup` the limits are set by whoever starts the runtime.
    """
    mapping = [{"containerID": inside, "hostID": outside, "size": count} for inside, outside, count in users.ids]
    limits = {} if cgroup is None else {"cgroupsPath": cgroup, "resources": _make_resources(spec.limits)}
    # Only root of the box's namespaces may change what they hold for all.
    sysctl = {"sysctl": _make_sysctl(spec.limits)} if users.keeper == 0 else {}
    return {
        "ociVersion": "1.0.2",
        "root": {"path": root, "readonly": False},
        "hostname": "cloche",
        "process": _make_process(spec, users, keeper_argv),
        "mounts": _make_mounts(spec.limits, users),
        "linux": {
            "namespaces": [
                *({"type": kind} for kind in ("pid", "mount", "ipc", "uts", "cgroup")),
                {"type": "user", "path": users.path} if users.path else {"type": "user"},
            ],
            "uidMappings": mapping,
            "gidMappings": mapping,
            **limits,
            **sysctl,
            "rootfsPropagation": "private",
            "maskedPaths": [f"/proc/{name}" for name in MASKED],
            "readonlyPaths": [f"/proc/{name}" for name in READ_ONLY],
            "seccomp": make_filter(allows_set_id(spec)),
        },
    }


@cache
def make_filter(allow_set_id: bool) -> dict[str, Any]:
    """The `seccomp` object for this machine."""
    return make_profile(os.uname().machine, allow_set_id=allow_set_id)


def allows_set_id(spec: SandboxSpec) -> bool:
    """Not where a folder of the host is writable: there such a file would outlive the box."""
    return spec.workspace_access != "rw"


def root_capability_mask(spec: SandboxSpec) -> int:
    """What a process of the box's root keeps; nothing in a box made for the ordinary user."""
    return sum(1 << number for number in ROOT_CAPABILITIES.values()) if spec.user == "root" else 0


def keeper_capability_mask(spec: SandboxSpec, users: UserNamespace) -> int:
    """What the keeper itself has."""
    if users.keeper != 0:
        return 0
    return sum(1 << number for number in KEEPER_CAPABILITIES.values()) | root_capability_mask(spec)


def make_ceilings(limits: Limits) -> dict[int, int]:
    """What each process of the box may have at most, by number of setrlimit(2); the launcher sets it."""
    open_files = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return {
        resource.RLIMIT_CORE: 1,  # with 0 a crash handler of the host's would be started: see core(5)
        resource.RLIMIT_NOFILE: open_files,
        resource.RLIMIT_FSIZE: limits.disk_mb << 20,
        resource.RLIMIT_MEMLOCK: 64 << 10,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 1024,
        resource.RLIMIT_NPROC: 4 * (limits.pids + KEEPER_PIDS),
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NICE: 0,
    }


def _make_process(spec: SandboxSpec, users: UserNamespace, keeper_argv: Sequence[str]) -> dict[str, Any]:
    capabilities = {*KEEPER_CAPABILITIES, *(ROOT_CAPABILITIES if spec.user == "root" else ())}
    names = sorted(capabilities) if users.keeper == 0 else []
    return {
        "terminal": False,
        "user": {"uid": users.keeper, "gid": users.keeper},
        "args": list(keeper_argv),
        "env": ["PATH=/usr/bin:/bin"],
        "cwd": "/",
        "capabilities": {"bounding": names, "effective": names, "permitted": names, "inheritable": [], "ambient": []},
        "noNewPrivileges": True,
    }


def _make_mounts(limits: Limits, users: UserNamespace) -> list[dict[str, Any]]:
    shared_memory = max(1, limits.memory_mb // 2)
    group_of_terminals = [f"gid={TERMINALS}"] if users.knows(TERMINALS) else []
    return [
        _mount("/proc", "proc", "nosuid", "noexec", "nodev"),
        _mount("/dev", "tmpfs", "nosuid", "noexec", "strictatime", "mode=755", "size=64k", "nr_inodes=64"),
        _mount(
            "/dev/pts",
            "devpts",
            *("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "max=16"),
            *group_of_terminals,
        ),
        _mount(
            "/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777", f"size={shared_memory}m", "nr_inodes=4096"
        ),
    ]


def _mount(target: str, kind: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": kind, "source": kind, "options": list(options)}


def _make_sysctl(limits: Limits) -> dict[str, str]:
    """Memory that belongs to no process can't be had back by ending one: System V objects get little of it."""
    pages = (limits.memory_mb << 20) // resource.getpagesize()
    return {
        "kernel.shm_rmid_forced": "1",
        "kernel.shmall": str(pages // 2),
        "kernel.msgmni": str(max(1, limits.memory_mb // 4)),
        "kernel.msgmnb": "16384",
        "kernel.sem": f"250 {250 * limits.memory_mb} 100 {limits.memory_mb}",
    }


def socket_memory(limits: Limits) -> int:
    """Octets for what waits in sockets, which v1 counts apart from all other memory."""
    return limits.memory_mb << 18


def _make_resources(limits: Limits) -> dict[str, Any]:
    memory = limits.memory_mb << 20
    return {
        "devices": [{"allow": False, "access": "rwm"}],
        "memory": {"limit": memory, "swap": memory},
        "cpu": {"period": CPU_PERIOD_US, "quota": int(limits.cpus * CPU_PERIOD_US)},
        "pids": {"limit": limits.pids + KEEPER_PIDS},
    }
