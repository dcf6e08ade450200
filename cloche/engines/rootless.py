"""The embedded engine for an ordinary user: the same box, in a user namespace of that user's.

What root does by loop devices and id-mapped mounts is done by a file system in memory and by the user
namespace's own map. What was not prepared for the user (see `setup.py`) is missing, and refused.
"""

from __future__ import annotations

import hashlib
import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.engines import config, ids, subids
from cloche.engines.abilities import (
    missing_limits,
    refuse_to_go_without,
    refuse_what_is_not_enforced,
    rootless_abilities,
)
from cloche.engines.base import Box, EngineUsage, read_mark
from cloche.engines.cgroups import BoxCgroup, find_hierarchies
from cloche.engines.launcher import run_launcher
from cloche.engines.oci import KEEPER, OciEngine, bind_options, ceiling_options, maker_options
from cloche.engines.verify import Keeper, verify_box
from cloche.errors import EngineError, Unsupported
from cloche.faults import point
from cloche.store.makers import start_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloche.engines.abilities import Ability
    from cloche.engines.base import Counters
    from cloche.images.base import Image
    from cloche.models import SandboxSpec

END_SECONDS: Final = 10.0
CGROUPS: Final = Path("/sys/fs/cgroup")
PID_FILE, END_FOLDER = "keeper.pid", "end"
OWN_PROGRAMS: Final = frozenset(("launch", "keeper", "crun", "runc", "exe"))
"""What a box's processes are called before and after the runtime has become the keeper."""


@dataclass(frozen=True, slots=True)
class Place:
    """Who a box's users are on this machine."""

    slice: subids.Slice | None
    """None: nobody but the caller."""
    is_user: bool
    """The caller is the box's ordinary user, and not its root."""

    @property
    def users(self) -> config.UserNamespace:
        """Within the user namespace that the launcher makes; the runtime makes one more, in which no mount can be undone."""
        if self.slice is None:
            return config.UserNamespace(((config.USER, 0, 1),))
        # As they are, row by row: the kernel takes none that reaches over two of those above.
        rows = subids.make_rows(self.slice.uid, os.geteuid(), is_user=self.is_user)
        return config.UserNamespace(tuple((inside, inside, count) for inside, _, count in rows))

    def keeper(self, spec: SandboxSpec) -> Keeper:
        """The first process, seen from outside."""
        uid, gid = os.geteuid(), os.getegid()
        if self.slice is not None:
            uid = subids.outside(self.slice.uid, uid, is_user=self.is_user)
            gid = subids.outside(self.slice.gid, gid, is_user=self.is_user)
        return Keeper(uid, gid, config.keeper_capability_mask(spec, self.users))

    def maps(self) -> list[str]:
        """The launcher's options."""
        if self.slice is None:
            return []
        uids = subids.make_rows(self.slice.uid, os.geteuid(), is_user=self.is_user)
        gids = subids.make_rows(self.slice.gid, os.getegid(), is_user=self.is_user)
        return ["--uid-map", subids.make_map(uids), "--gid-map", subids.make_map(gids)]


class RootlessEngine(OciEngine):
    """Boxes made by one OCI runtime, for a user who is not root."""

    def __init__(self, runtime: str) -> None:
        super().__init__(runtime, run=run_folder())

    @cached_property
    def slices(self) -> list[subids.Slice]:
        """The ids that there are for boxes."""
        return subids.find_slices()

    def abilities(self) -> Mapping[str, Ability]:
        """The row of the table, without what nothing was prepared for."""
        hierarchies = find_hierarchies()
        missing = [{"cpu": "cpus", "memory": "memory_mb", "pids": "pids"}[name] for name in hierarchies.missing()]
        ranges = [] if self.slices else ["own_uids", "user_root"]
        return rootless_abilities([*missing, *ranges], has_tree=hierarchies.v2 is not None)

    def refuse(self, spec: SandboxSpec) -> None:
        """Raises: Unsupported, InvalidRequest."""
        abilities = self.abilities()
        refuse_what_is_not_enforced(self.name, abilities, spec)
        refuse_to_go_without(self.name, abilities, spec)
        if not self.slices and self.runtime.name != "crun":
            raise Unsupported(
                f"{self.runtime.name} makes no box without ids of its own; "
                f"{abilities['own_uids'].reason}; or use engine='embedded:crun'"
            )

    def create(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> Box:
        """Make and start a box; on failure nothing is left but the folder.

        Raises: EngineError.
        """
        try:
            box, place, launch = self._plan(id, folder, spec, image)
            point("create.planned")
            run_launcher(launch)
            point("create.launched")
            cgroup = BoxCgroup(id, find_hierarchies())
            pid = verify_box(lambda: [(folder / PID_FILE).read_text()], cgroup, spec, place.keeper(spec))
            cgroup.limit_executions(spec.limits.pids)
            point("create.verified")
        except EngineError as error:
            self.delete(bare(id, self.name, folder))
            raise EngineError(error.message + self._explain()) from error
        except BaseException:
            self.delete(bare(id, self.name, folder))
            raise
        self._keep_filter(id, spec)
        return replace(box, state={**box.state, "pid": int(pid), "started": start_time(int(pid)) or ""})

    def delete(self, box: Box) -> None:
        """End it and remove all that belongs to it but its folder."""
        cgroup = BoxCgroup(box.id, find_hierarchies())
        if cgroup.has_tree:
            cgroup.kill()
        _kill(box)
        point("delete.killed")
        cgroup.remove()
        point("delete.cgroups")
        self._remove_state(box)
        # What the keeper made is another id's, perhaps: it can be removed, and not be moved.
        with suppress(FileNotFoundError):
            for mark in os.listdir(box.folder / END_FOLDER):
                os.rmdir(box.folder / END_FOLDER / mark)
        ids.release(self.run / "ids", box.id)
        point("delete.released")

    def why_ended(self, box: Box) -> str:
        """By the mark that the keeper leaves, and by the kernel's count."""
        mark = read_mark(box.folder / END_FOLDER)
        if mark:
            return mark
        return "out_of_memory" if self.counters(box).read().oom_kills else "killed"

    def is_alive(self, box: Box) -> bool:
        """True while its keeper runs."""
        return "pid" in box.state and start_time(int(box.state["pid"])) == box.state["started"]

    def first_process(self, box: Box) -> int | None:
        """The keeper's number."""
        return int(box.state["pid"]) if self.is_alive(box) else None

    def usage(self, box: Box) -> EngineUsage:
        """What the cgroups count, where there are any."""
        return EngineUsage(*BoxCgroup(box.id, find_hierarchies()).usage())

    def counters(self, box: Box) -> Counters:
        """The counters of its limits."""
        return BoxCgroup(box.id, find_hierarchies()).counters()

    def _plan(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> tuple[Box, Place, list[str]]:
        cgroup = BoxCgroup(id, find_hierarchies())
        self._prepare(cgroup)
        place = self._take_place(id, spec)
        point("create.leased")
        entered = cgroup.limit(spec.limits)
        (folder / END_FOLDER).mkdir()
        # Written by a process that may be another id by then, which the folder above keeps from all others.
        (folder / END_FOLDER).chmod(0o777)
        (folder / PID_FILE).touch()
        (folder / PID_FILE).chmod(0o666)
        point("create.disk")
        self._write_config(box := self._box(id, folder), spec, cgroup, place)
        return box, place, self._launch_command(box, spec, image, cgroup, place, entered)

    def _box(self, id: str, folder: Path) -> Box:
        missing = " ".join(missing_limits(self.abilities()))
        return Box(id=id, engine=self.name, folder=folder, socket=folder / "keeper.sock", state={"missing": missing})

    def _take_place(self, id: str, spec: SandboxSpec) -> Place:
        if not self.slices:
            return Place(None, is_user=True)
        number = ids.lease_number(self.run / "ids", id, len(self.slices))
        return Place(self.slices[number], is_user=spec.workspace is not None and spec.user == "user")

    def _write_config(self, box: Box, spec: SandboxSpec, cgroup: BoxCgroup, place: Place) -> None:
        argv = [KEEPER, *self._keeper_options(spec, cgroup), "--name", mark_of(box.id)]
        if place.slice is None:
            argv += ["--uid-only", str(config.USER)]
        users = place.users
        document = config.make_config(spec, root=str(self.run / "root"), users=users, keeper_argv=argv, cgroup=None)
        self._save_config(box.folder, document, spec)

    def _launch_command(
        self, box: Box, spec: SandboxSpec, image: Image, cgroup: BoxCgroup, place: Place, entered: list[Path]
    ) -> list[str]:
        folder, limits = box.folder, spec.limits
        command = [str(settings.launch_path()), "--rootless", "--folder", str(folder), "--mounts", str(self.run)]
        command += [*maker_options(), "--lower", str(image.rootfs), *place.maps()]
        command += ["--disk-mb", str(limits.disk_mb), "--inodes", str(limits.inodes)]
        command += ["--end", str(folder / END_FOLDER)]
        for path in entered:
            command += ["--enter", str(path)]
        if cgroup.has_tree:
            command += ["--tree-cgroup", str(cgroup.tree)]
        if "pids" in cgroup.hierarchies.v1:
            command += ["--pids-cgroup", str(cgroup.folder("pids")), "--pids", str(limits.pids)]
        state = self._state
        if place.is_user and place.slice is not None:
            # What the runtime keeps would be another id's there, and nobody's to remove.
            command += ["--hide", str(state)]
        if hidden := self._mount_to_hide():
            command += ["--hide", str(hidden)]
        if self.runtime.makes_cgroups and CGROUPS.is_dir():
            command += ["--read-only", str(CGROUPS)]
        command += [*ceiling_options(limits), *bind_options(spec, image), "--"]
        count = self._inherited(cgroup)
        start = self.runtime.command(
            self._find_program(), state=state, bundle=folder, id=box.id, descriptors=count, pid_file=folder / PID_FILE
        )
        return [*command, *start]

    def _keeper_options(self, spec: SandboxSpec, cgroup: BoxCgroup) -> list[str]:
        names = ["--listen-fd"]
        names += ["--runs-fd"] if cgroup.has_tree else []
        names += ["--join-fd"] if "pids" in cgroup.hierarchies.v1 else []
        names += ["--end-fd"]
        options = [word for number, name in enumerate(names, 3) for word in (name, str(number))]
        return [*options, *self._common_options(spec)]

    def _inherited(self, cgroup: BoxCgroup) -> int:
        return 2 + cgroup.has_tree + ("pids" in cgroup.hierarchies.v1)


def run_folder() -> Path:
    """Where the runtime's state and the leases are: one for each user of this machine, whatever CLOCHE_HOME says."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(settings.user_home(), ".local/state")
    return Path(state) / "cloche"


def bare(id: str, engine: str, folder: Path) -> Box:
    """A box of which nothing is known but where it would be."""
    return Box(id=id, engine=engine, folder=folder, socket=folder / "keeper.sock", state={})


def _kill(box: Box) -> None:
    """End its first process, and with it all others; and what was on the way to become one."""
    known = box.state.get("pid")
    if known is not None and start_time(int(known)) == box.state["started"]:
        _end(int(known))
    while found := find_processes(box.id):
        for pid in found:
            _end(pid)


def find_processes(id: str) -> list[int]:
    """Those that make or are the box of that id."""
    found: list[int] = []
    mark = mark_of(id)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            argv = Path("/proc", name, "cmdline").read_bytes().decode(errors="replace").split("\0")
            if os.path.basename(argv[0]) in OWN_PROGRAMS and is_about(argv, id, mark):
                found.append(int(name))
    return found


def is_about(argv: list[str], id: str, mark: str) -> bool:
    """True where one of the words is the id, or a folder called so, or the mark."""
    return any(word in (id, mark) or word.endswith(f"/{id}") for word in argv)


def mark_of(id: str) -> str:
    """By which the keeper is known: what the box sees of it does not tell the id."""
    return hashlib.sha256(id.encode()).hexdigest()[:32]


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            poll = select.poll()
            poll.register(process, select.POLLIN)
            if not poll.poll(END_SECONDS * 1000):
                raise EngineError(f"process {pid} of a sandbox is left {END_SECONDS:g} s after SIGKILL")
        finally:
            os.close(process)
