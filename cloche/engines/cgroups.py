"""Where this machine's cgroups are, and what is done with a box's: limits are the OCI runtime's work."""

from __future__ import annotations

import errno
import os
import select
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cloche.engines.config import CPU_PERIOD_US, KEEPER_PIDS, socket_memory
from cloche.engines.counters import CgroupCounters, CounterFile
from cloche.engines.mountinfo import read_mounts
from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloche.engines.mountinfo import MountRow
    from cloche.models import Limits

PARENT = "cloche"
NEEDED = ("cpu", "memory", "pids")


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """The cgroup mounts of this machine."""

    v1: dict[str, Path]
    """Controller to mount point."""
    v2: Path | None
    v2_controllers: frozenset[str]
    parent: str = PARENT
    """The folder of the boxes' folders in each of them."""

    @property
    def unified(self) -> bool:
        """True where the limits are v2's; otherwise its tree, if any, serves to end executions."""
        return "memory" in self.v2_controllers and "pids" in self.v2_controllers

    @property
    def kind(self) -> str:
        if self.unified:
            return "v2"
        return "hybrid" if self.v2 else "v1"

    def missing(self) -> list[str]:
        """The controllers that a box needs and this machine does not offer."""
        have = self.v2_controllers if self.unified else self.v1.keys()
        return [name for name in NEEDED if name not in have]


def choose_mounts(rows: Iterable[MountRow]) -> tuple[dict[str, Path], Path | None]:
    """The v1 mounts by controller, and the v2 mount."""
    v1: dict[str, Path] = {}
    v2: Path | None = None
    for row in rows:
        if row.kind == "cgroup2":
            v2 = v2 or Path(row.path)
        elif row.kind == "cgroup":
            for option in row.settings:
                if option not in ("rw", "ro", "xattr"):
                    v1.setdefault(option.removeprefix("name="), Path(row.path))
    return v1, v2


@cache
def all_hierarchies() -> Hierarchies:
    """Those of this machine, whoever asks. Read once; mounts of cgroups do not move while a machine runs."""
    v1, v2 = choose_mounts(read_mounts())
    return Hierarchies(v1, v2, _controllers(v2))


@cache
def find_hierarchies() -> Hierarchies:
    """Those that this process may use."""
    there, uid = all_hierarchies(), os.geteuid()
    if uid == 0:
        return there
    return narrow(there.v1, there.v2, uid, Path("/proc/self/cgroup").read_text())


def find_v2_beside_v1() -> Path | None:
    """The mount of a v2 tree on a machine whose limits are v1's."""
    there = all_hierarchies()
    return None if there.unified else there.v2


def parent_of(uid: int) -> str:
    """The folder of a user's boxes' folders."""
    return PARENT if uid == 0 else f"{PARENT}-{uid}"


def narrow(v1: dict[str, Path], v2: Path | None, uid: int, own: str) -> Hierarchies:
    """What an ordinary user may use: on v1 the folders that `cloche setup` made, on v2 what was delegated."""
    parent = parent_of(uid)
    usable = {name: mount for name, mount in v1.items() if os.access(mount / parent, os.W_OK)}
    delegated = _find_delegated(v2, uid, own) if v2 else None
    return Hierarchies(usable, delegated, _controllers(delegated), parent)


def _find_delegated(v2: Path, uid: int, own: str) -> Path | None:
    """The highest folder above this process that is the user's: only within it may a process be moved."""
    path = next((line[3:] for line in own.splitlines() if line.startswith("0::")), "/")
    folder = v2 / path.lstrip("/")
    found = None
    while folder != v2:
        try:
            is_ours = folder.stat().st_uid == uid and os.access(folder / "cgroup.procs", os.W_OK)
        except FileNotFoundError:
            is_ours = False
        found = folder if is_ours else found
        folder = folder.parent
    return found


def _controllers(v2: Path | None) -> frozenset[str]:
    return frozenset((v2 / "cgroup.controllers").read_text().split() if v2 else [])


@dataclass(frozen=True, slots=True)
class BoxCgroup:
    """The cgroups of one box."""

    id: str
    hierarchies: Hierarchies

    @property
    def path(self) -> str:
        """Below every hierarchy's root."""
        return f"/{self.hierarchies.parent}/{self.id}"

    @property
    def has_tree(self) -> bool:
        """True where the box can be killed as one."""
        return self.hierarchies.v2 is not None

    @property
    def tree(self) -> Path:
        """The box in the v2 tree: all its processes are in it, so it can be killed as one."""
        if self.hierarchies.v2 is None:
            raise EngineError(
                "no cgroup2 file system is mounted; mount one: mount -t cgroup2 none /sys/fs/cgroup/unified"
            )
        return self.hierarchies.v2 / self.hierarchies.parent / self.id

    def folder(self, controller: str) -> Path:
        if self.hierarchies.unified:
            return self.tree
        return self.hierarchies.v1[controller] / self.hierarchies.parent / self.id

    def prepare(self) -> None:
        """Make the parents, with the controllers passed down where v2 wants that."""
        h = self.hierarchies
        if self.has_tree:
            self.tree.parent.mkdir(exist_ok=True)
        if not h.unified:
            if "pids" in h.v1:
                self.folder("pids").parent.mkdir(exist_ok=True)
            return
        parent = self.tree.parent
        there = [name for name in NEEDED if name in h.v2_controllers]
        for folder in (parent.parent, parent):
            _pass_down(folder, there)

    def limit(self, limits: Limits) -> list[Path]:
        """Make the folders of the controllers that are there, and set the limits; the launcher is to enter them.

        For a runtime that has nothing to do with cgroups.
        Raises: EngineError.
        """
        files = limit_files(self.hierarchies, limits)
        folders = {self.folder(controller): None for controller, _ in files}
        if not self.hierarchies.unified and "cpuacct" in self.hierarchies.v1:
            folders[self.folder("cpuacct")] = None
        for folder in folders:
            folder.mkdir(exist_ok=True)
        for (controller, name), value in files.items():
            _write(self.folder(controller) / name, value)
        return [] if self.hierarchies.unified else list(folders)

    def limit_executions(self, pids: int) -> None:
        """On v2, where no controller is passed down from a cgroup that has processes: the keeper leaves the box's own.

        On v1 the launcher has set this limit.
        Raises: EngineError.
        """
        if not self.hierarchies.unified:
            return
        keeper = self.tree / "keeper"
        keeper.mkdir()
        for pid in (self.tree / "cgroup.procs").read_text().split():
            _write(keeper / "cgroup.procs", pid)
        _pass_down(self.tree, ("pids",))
        _write(self.tree / "runs" / "pids.max", str(pids))

    def limit_sockets(self, octets: int) -> None:
        """On v1, where memory of sockets is apart from the rest, and no runtime limits it any more.

        Raises: EngineError.
        """
        if "memory" in self.hierarchies.v1 and not self.hierarchies.unified:
            _write(self.folder("memory") / "memory.kmem.tcp.limit_in_bytes", str(octets))

    def processes(self) -> list[str]:
        """The numbers of those in the box's own folder."""
        return (self.tree / "cgroup.procs").read_text().split()

    def first_process(self) -> int | None:
        """The keeper's number on this machine: it is alone in the box's own folder, or on v2 in one of its own."""
        for folder in (self.tree / "keeper", self.tree):
            with suppress(OSError):
                pids = (folder / "cgroup.procs").read_text().split()
                if pids:
                    return int(pids[0])
        return None

    def is_populated(self) -> bool:
        try:
            return "populated 1" in (self.tree / "cgroup.events").read_text()
        except FileNotFoundError:
            return False

    def kill(self, timeout: float = 10) -> None:
        """End every process of the box, whatever it does about signals, and wait until that is so."""
        try:
            with (self.tree / "cgroup.events").open() as events:
                (self.tree / "cgroup.kill").write_text("1")
                poll = select.poll()
                poll.register(events, select.POLLPRI)
                deadline = time.monotonic() + timeout
                while "populated 1" in events.read():
                    if time.monotonic() > deadline:
                        raise EngineError(f"sandbox {self.id}: processes are left {timeout:g} s after SIGKILL")
                    poll.poll(100)
                    events.seek(0)
        except OSError as error:
            # Another process may remove it at the same time.
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise

    def remove(self) -> None:
        """Remove the empty cgroups from every hierarchy."""
        h = self.hierarchies
        mounts = {h.v2} if h.unified else {h.v2, *h.v1.values()}
        for mount in mounts:
            if mount is not None:
                _remove_tree(mount / h.parent / self.id)

    def counters(self) -> CgroupCounters:
        """How often the kernel ended a process for want of memory, and refused one."""
        memory = "memory.events" if self.hierarchies.unified else "memory.oom_control"
        missing = self.hierarchies.missing()
        return CgroupCounters(
            None if "memory" in missing else CounterFile(self.folder("memory") / memory, "oom_kill"),
            None if "pids" in missing else CounterFile(self.folder("pids") / "runs" / "pids.events", "max"),
        )

    def usage(self) -> tuple[int | None, float | None]:
        """Memory in octets and CPU time in seconds; None where nothing accounts them."""
        v1 = self.hierarchies.v1
        if self.hierarchies.unified:
            memory = int((self.tree / "memory.current").read_text())
            return memory, CounterFile(self.tree / "cpu.stat", "usage_usec").read() / 1e6
        memory = int((self.folder("memory") / "memory.usage_in_bytes").read_text()) if "memory" in v1 else None
        seconds = int((self.folder("cpuacct") / "cpuacct.usage").read_text()) / 1e9 if "cpuacct" in v1 else None
        return memory, seconds


def limit_files(hierarchies: Hierarchies, limits: Limits) -> dict[tuple[str, str], str]:
    """Each limit that is the cgroups' to keep, as the kernel has it: by controller and file."""
    memory, pids = str(limits.memory_mb << 20), str(limits.pids + KEEPER_PIDS)
    quota = int(limits.cpus * CPU_PERIOD_US)
    if hierarchies.unified:
        files = {
            ("memory", "memory.max"): memory,
            ("memory", "memory.swap.max"): "0",
            ("pids", "pids.max"): pids,
            ("cpu", "cpu.max"): f"{quota} {CPU_PERIOD_US}",
        }
    else:
        # In this order: the limit with swap may not be the lower one.
        files = {
            ("memory", "memory.limit_in_bytes"): memory,
            ("memory", "memory.memsw.limit_in_bytes"): memory,
            ("memory", "memory.kmem.tcp.limit_in_bytes"): str(socket_memory(limits)),
            ("pids", "pids.max"): pids,
            ("cpu", "cpu.cfs_quota_us"): str(quota),
        }
    missing = hierarchies.missing()
    return {place: value for place, value in files.items() if place[0] not in missing}


def _pass_down(folder: Path, controllers: Iterable[str]) -> None:
    _write(folder / "cgroup.subtree_control", " ".join(f"+{name}" for name in controllers))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise EngineError(f"cannot write {text!r} to {path}: {error.strerror}") from error


def _remove_tree(folder: Path) -> None:
    """Deepest first; the kernel may need a moment to forget processes that have just ended."""
    try:
        with os.scandir(folder) as entries:
            children = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return
    for child in children:
        _remove_tree(Path(child))
    deadline = time.monotonic() + 5
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise EngineError(f"cannot remove the cgroup {folder}: {error.strerror}") from error
        time.sleep(0.001)
