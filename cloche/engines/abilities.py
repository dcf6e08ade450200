"""What each engine enforces, and by what means: the one table that refusals, tests and documentation read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from cloche.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cloche.engines.base import Enforced
    from cloche.models import SandboxSpec


class Ability(NamedTuple):
    """How a promise is kept."""

    enforced: Enforced
    reason: str
    """By what means, or why not."""


PROMISES: Final[Mapping[str, str]] = {
    "isolation": "code can neither see nor change this machine or another sandbox",
    "own_uids": "the ids of users inside mean nobody outside",
    "network_none": "there is no network but the sandbox's own loopback",
    "no_privileges": "code has no capabilities, and can't gain any",
    "syscalls": "only the system calls that ordinary programs need reach the kernel",
    "cpus": "CPU cores",
    "memory_mb": "memory, in MiB",
    "disk_mb": "everything that can be written, in MiB",
    "inodes": "files, folders and links that can be made",
    "pids": "processes and threads",
    "timeout": "seconds that one execution may take",
    "output_bytes": "octets of output that are kept of one execution",
    "kill_tree": "an end of an execution is the end of all that it started",
    "leaves_nothing": "a deleted sandbox leaves no process, mount or file",
    "user_root": "code may be root of the sandbox, with what package managers need",
    "workspace": "a folder of this machine is shown at /workspace",
    "image": "the root file system is that of an image",
}

_EMBEDDED: Final[Mapping[str, Ability]] = {
    "isolation": Ability(
        "kernel", "namespaces of its own for processes, mounts, network, IPC, names, users and cgroups"
    ),
    "own_uids": Ability("kernel", "a user namespace with a range of ids that no other sandbox has"),
    "network_none": Ability("kernel", "a network namespace with nothing but loopback in it"),
    "no_privileges": Ability("kernel", "empty capability sets and no_new_privs"),
    "syscalls": Ability("kernel", "a seccomp filter that knows what is allowed"),
    "cpus": Ability("kernel", "the cgroup's share of CPU time"),
    "memory_mb": Ability("kernel", "the cgroup's memory limit, swap included"),
    "disk_mb": Ability("kernel", "a file system of its own, of that size"),
    "inodes": Ability("kernel", "a file system of its own, with so many inodes"),
    "pids": Ability("kernel", "the cgroup's limit of processes"),
    "timeout": Ability("keeper", "a timer of the keeper, which ends the execution's whole tree"),
    "output_bytes": Ability("keeper", "the keeper keeps the beginning and the end, the library counts"),
    "kill_tree": Ability("kernel", "a cgroup of its own for each execution"),
    "leaves_nothing": Ability("kernel", "the end of the process namespace and of a private mount namespace"),
    "user_root": Ability("kernel", "root of the user namespace, with six capabilities"),
    "workspace": Ability("kernel", "a mount, read-only where it is to be"),
    "image": Ability("kernel", "an overlay over the image, which stays as it is"),
}

_NO_ISOLATION: Final = "code runs as a plain process of the server's user"
_NO_CGROUP: Final = "code runs outside of any cgroup of Cloche's"

ABILITIES: Final[Mapping[str, Mapping[str, Ability]]] = {
    "embedded:crun": _EMBEDDED,
    "embedded:runc": _EMBEDDED,
    "host": {
        "isolation": Ability("no", _NO_ISOLATION),
        "own_uids": Ability("no", _NO_ISOLATION),
        "network_none": Ability("no", "code uses this machine's network"),
        "no_privileges": Ability("no", "code has the rights of the server's user"),
        "syscalls": Ability("no", "nothing filters what code asks of the kernel"),
        "cpus": Ability("no", _NO_CGROUP),
        "memory_mb": Ability("no", _NO_CGROUP),
        "disk_mb": Ability("no", "code writes to this machine's own file systems"),
        "inodes": Ability("no", "code writes to this machine's own file systems"),
        "pids": Ability("no", _NO_CGROUP),
        "timeout": Ability("keeper", _EMBEDDED["timeout"].reason),
        "output_bytes": Ability("keeper", _EMBEDDED["output_bytes"].reason),
        "kill_tree": Ability("keeper", "a monitor that adopts and ends whatever the execution started"),
        "leaves_nothing": Ability("no", "files that code wrote outside of its own folder stay"),
        "user_root": Ability("no", "code runs as the server's user and can't become another"),
        "workspace": Ability("no", "there is no mount namespace to show it in; use the folder's own path"),
        "image": Ability("no", "code sees this machine's own files"),
    },
}


_YOURS: Final = "the box's user is you, groups included, in a user namespace: there are no ids of its own, for want of newuidmap or of"

ROOTLESS: Final[Mapping[str, Ability]] = {
    **_EMBEDDED,
    "own_uids": Ability(
        "kernel", "a user namespace with ids of its own; its root, or with a workspace its user, is you"
    ),
    "disk_mb": Ability("kernel", "a file system in memory, of that size; what is in it counts as memory too"),
    "inodes": Ability("kernel", "a file system in memory, with so many inodes"),
    "kill_tree": Ability(
        "keeper", "a monitor that adopts and ends whatever the execution started; where root stops it, the box is ended"
    ),
}
"""The embedded engine for an ordinary user, with all that `cloche setup` prepares."""

UNPREPARED: Final[Mapping[str, Ability]] = {
    **{
        name: Ability("no", "there is no cgroup that you may use; once, as root: cloche setup")
        for name in ("cpus", "memory_mb", "pids")
    },
    "own_uids": Ability("no", f"{_YOURS} lines in /etc/subuid and /etc/subgid; once, as root: cloche setup"),
    "user_root": Ability("no", f"{_YOURS} lines in /etc/subuid and /etc/subgid; once, as root: cloche setup"),
}
"""What it cannot do where nothing was prepared."""

MAY_BE_MISSING: Final = ("cpus", "memory_mb", "disk_mb", "inodes", "pids")
"""The limits that one may agree to go without."""


def rootless_abilities(missing: Collection[str], *, has_tree: bool) -> Mapping[str, Ability]:
    """What the embedded engine does for an ordinary user; `missing` names what nothing was prepared for."""
    tree = {"kill_tree": _EMBEDDED["kill_tree"]} if has_tree else {}
    return {**ROOTLESS, **tree, **{name: ability for name, ability in UNPREPARED.items() if name in missing}}


def missing_limits(abilities: Mapping[str, Ability]) -> list[str]:
    """Those that a box would have to go without."""
    return [name for name in MAY_BE_MISSING if abilities[name].enforced == "no"]


def refuse_to_go_without(engine: str, abilities: Mapping[str, Ability], spec: SandboxSpec) -> None:
    """Raises Unsupported for a default limit that is not in force, unless the spec says that it may be missing."""
    missing = [name for name in missing_limits(abilities) if name not in spec.without]
    if not missing:
        return
    names = ", ".join(missing)
    raise Unsupported(
        f"{names} can't be enforced by engine {engine!r} for uid {os.geteuid()}: {abilities[missing[0]].reason}; "
        f"or go without by name: without={missing!r} (--without {','.join(missing)})",
        engine=engine,
        promise=missing[0],
    )


def asked_promises(spec: SandboxSpec) -> list[str]:
    """The promises that this sandbox was explicitly asked to keep."""
    asked = [name for name in PROMISES if name in spec.explicit]
    if spec.user == "root":
        asked.append("user_root")
    if spec.workspace is not None:
        asked.append("workspace")
    if spec.image != "host":
        asked.append("image")
    return asked


def refuse_what_is_not_enforced(engine: str, abilities: Mapping[str, Ability], spec: SandboxSpec) -> None:
    """Raises Unsupported for the first promise that the engine can't keep."""
    for promise in asked_promises(spec):
        ability = abilities[promise]
        if ability.enforced == "no":
            raise Unsupported(
                f"{promise} ({PROMISES[promise]}) can't be enforced by engine {engine!r}: {ability.reason}; "
                + ("leave it out" if engine.startswith("embedded") else "leave it out, or use engine='embedded'"),
                engine=engine,
                promise=promise,
            )
