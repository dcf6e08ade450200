"""What the embedded engine needs of this machine, looked at without making a box."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cloche.engines.base import Fact
from cloche.engines.cgroups import find_hierarchies
from cloche.engines.seccomp import ARCHITECTURES

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Overlay over id-mapped layers came with it.
OLDEST_KERNEL = (5, 19)
UNPRIVILEGED = {"kernel/unprivileged_userns_clone": "0", "kernel/apparmor_restrict_unprivileged_userns": "1"}
"""Settings that keep ordinary users from making user namespaces, and the value that does."""
SETUP = "once, as root: cloche setup"


def find_program(name: str) -> str | None:
    """Its path; system folders count even where PATH leaves them out."""
    for folder in f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}".split(":"):
        path = os.path.join(folder, name)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def look_at_machine(runtime: str) -> list[Fact]:
    """Each thing that a box needs, whether it is there, and how to get it."""
    facts = [_machine(), _kernel(), _runtime(runtime), _user_namespaces()]
    if os.geteuid() == 0:
        return [*facts, _cgroups(), _mkfs(), _loop()]
    return [*facts, _unprivileged(), _delegation(), _ids()]


def _machine() -> Fact:
    found = os.uname().machine
    return Fact("machine", found in ARCHITECTURES, found, f"one of: {', '.join(ARCHITECTURES)}")


def _kernel() -> Fact:
    release = os.uname().release
    version = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    return Fact("kernel", version >= OLDEST_KERNEL, release, "Linux 5.19 or newer is needed for id-mapped layers")


def _unprivileged() -> Fact:
    """Some distributions let only root make them."""
    for path, closed in UNPRIVILEGED.items():
        try:
            found = Path("/proc/sys", path).read_text().strip()
        except FileNotFoundError:
            continue
        if found == closed:
            name = path.replace("/", ".")
            opened = "1" if closed == "0" else "0"
            return Fact("user namespaces of users", False, f"{name} is {found}", f"as root: sysctl -w {name}={opened}")
    return Fact("user namespaces of users", True, "allowed")


def _delegation() -> Fact:
    hierarchies = find_hierarchies()
    missing = hierarchies.missing()
    if not missing:
        return Fact("cgroups", True, f"{hierarchies.kind}, delegated", needed=False)
    found = f"nothing that uid {os.geteuid()} may use for {', '.join(missing)}"
    return Fact("cgroups", False, found, SETUP, needed=False)


def _ids() -> Fact:
    from cloche.engines.subids import MAPPERS, find_slices

    missing = [name for name in MAPPERS if find_program(name) is None]
    if missing:
        return Fact("user ids", False, f"{', '.join(missing)}: not installed", "apt-get install uidmap", needed=False)
    count = len(find_slices())
    found = f"enough for {count} boxes at once" if count else "none in /etc/subuid and /etc/subgid"
    return Fact("user ids", count > 0, found, SETUP, needed=False)


def _cgroups() -> Fact:
    hierarchies = find_hierarchies()
    missing = hierarchies.missing()
    if missing:
        return Fact(
            "cgroups", False, f"{hierarchies.kind}, without {', '.join(missing)}", "mount them, or boot with cgroup v2"
        )
    if hierarchies.v2 is None:
        return Fact("cgroups", False, "v1 only", "mkdir -p /run/cgroup2 && mount -t cgroup2 none /run/cgroup2")
    return Fact("cgroups", True, hierarchies.kind)


def _runtime(name: str) -> Fact:
    program = find_program(name)
    if program is None:
        return Fact(name, False, "not installed", f"apt-get install {name}")
    import subprocess

    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=10)
    return Fact(name, said.returncode == 0, (said.stdout or said.stderr).partition("\n")[0])


def _mkfs() -> Fact:
    program = find_program("mkfs.ext4")
    return Fact("mkfs.ext4", program is not None, program or "not installed", "apt-get install e2fsprogs")


def _loop() -> Fact:
    there = Path("/dev/loop-control").exists()
    return Fact("loop devices", there, "/dev/loop-control" if there else "missing", "modprobe loop")


def _user_namespaces() -> Fact:
    limit = int(Path("/proc/sys/user/max_user_namespaces").read_text())
    return Fact("user namespaces", limit > 0, f"at most {limit}", "sysctl -w user.max_user_namespaces=10000")
