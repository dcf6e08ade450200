"""The embedded engine: an OCI runtime driven directly, as root, with no daemon."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloche import settings
from cloche.engines import config, ids
from cloche.engines.abilities import ABILITIES, missing_limits, refuse_what_is_not_enforced
from cloche.engines.base import Box, EngineUsage, Fact, life_options, read_mark
from cloche.engines.cgroups import BoxCgroup, Hierarchies, find_hierarchies, find_v2_beside_v1
from cloche.engines.disks import Disks
from cloche.engines.filters import CompiledFilter, find_filter, stamp
from cloche.engines.folders import remove_folder
from cloche.engines.launcher import run_launcher
from cloche.engines.machine import find_program, look_at_machine
from cloche.engines.verify import Keeper, verify_box
from cloche.errors import EngineError, InvalidRequest
from cloche.faults import launcher_options, point
from cloche.images.base import Image
from cloche.models import SandboxSpec, random_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloche.engines.abilities import Ability
    from cloche.engines.base import Counters
    from cloche.models import Limits

# Machine-wide, so that two data folders cannot take the same ids; gone after a reboot, like the boxes.
RUN = Path("/run/cloche")
KEEPER = "/.cloche/keeper"
LISTEN_FD, RUNS_FD, JOIN_FD = 3, 4, 5


@dataclass(frozen=True, slots=True)
class OciRuntime:
    """One program that makes containers: a row of the table, not an engine of its own."""

    name: str
    cgroup_options: tuple[str, ...]
    no_cgroup_options: tuple[str, ...]
    makes_cgroups: bool
    """It makes some, in those that it is in, where it was not told to."""
    refuses_hybrid: bool
    """It refuses to start where a cgroup2 tree with controllers lies beside v1."""
    takes_filter: bool
    """It leaves a box's compiled seccomp filter in its state, and takes one: that saves 3 ms for each box."""

    def command(
        self, program: str, *, state: Path, bundle: Path, id: str, descriptors: int, pid_file: Path | None = None
    ) -> list[str]:
        """The argv that starts a box and returns once its first process runs.

        With a `pid_file` the runtime has nothing to do with cgroups: who calls is in them already.
        """
        run = ["run", "--detach", "--preserve-fds", str(descriptors), "--bundle", str(bundle)]
        if pid_file is None:
            options = self.cgroup_options
        else:
            options = self.no_cgroup_options
            run += ["--pid-file", str(pid_file)]
        return [program, *options, "--root", str(state), *run, id]


RUNTIMES = {
    "crun": OciRuntime(
        "crun",
        cgroup_options=("--cgroup-manager", "cgroupfs"),
        no_cgroup_options=("--cgroup-manager", "disabled"),
        makes_cgroups=False,
        refuses_hybrid=True,
        takes_filter=True,
    ),
    "runc": OciRuntime(
        "runc",
        cgroup_options=(),
        no_cgroup_options=(),
        makes_cgroups=True,
        refuses_hybrid=False,
        takes_filter=False,
    ),
}


class OciEngine:
    """Boxes made by one OCI runtime, for root."""

    def __init__(self, runtime: str, run: Path = RUN) -> None:
        self.runtime = RUNTIMES[runtime]
        self.name = f"embedded:{runtime}"
        self.run = run
        self._state = run / runtime
        self._is_prepared = False
        self._program: str | None = None

    def check(self) -> list[Fact]:
        """Try what a box needs on this machine, a box included where all else is there."""
        facts = look_at_machine(self.runtime.name)
        if all(fact.ok or not fact.needed for fact in facts):
            facts.append(self._try_box())
        return facts

    def abilities(self) -> Mapping[str, Ability]:
        """The row of the table."""
        return ABILITIES[self.name]

    def refuse(self, spec: SandboxSpec) -> None:
        """Raises: Unsupported, InvalidRequest."""
        refuse_what_is_not_enforced(self.name, self.abilities(), spec)
        if spec.workspace is not None and not Path(spec.workspace).is_dir():
            raise InvalidRequest(f"workspace is {spec.workspace!r}; an existing folder of this machine was expected")

    def create(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> Box:
        """Make and start a box; on failure nothing is left but the folder.

        Raises: EngineError.
        """
        program = self._find_program()
        box, launch = self.plan(id, folder, spec, image)
        descriptors = 2 if find_hierarchies().unified else 3
        try:
            start = self.runtime.command(program, state=self._state, bundle=folder, id=id, descriptors=descriptors)
            point("create.planned")
            run_launcher([*launch, "--", *start])
            point("create.launched")
            cgroup = BoxCgroup(id, find_hierarchies())
            cgroup.limit_sockets(config.socket_memory(spec.limits))
            first = int(box.state["first_id"])
            keeper = Keeper(first, first, config.keeper_capability_mask(spec, self._users(box)))
            verify_box(cgroup.processes, cgroup, spec, keeper)
            cgroup.limit_executions(spec.limits.pids)
            point("create.verified")
        except EngineError as error:
            self.delete(box)
            raise EngineError(error.message + self._explain()) from error
        except BaseException:
            self.delete(box)
            raise
        self._keep_filter(id, spec)
        disks_in(settings.home()).refill(disk_mb=spec.limits.disk_mb, inodes=spec.limits.inodes)
        return box

    def _explain(self) -> str:
        """What of this machine may be the reason that no box could be made."""
        return "".join(
            f"; {fact.name}: {fact.found}: {fact.repair}"
            for fact in look_at_machine(self.runtime.name)
            if fact.needed and not fact.ok
        )

    def plan(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> tuple[Box, list[str]]:
        """A box with its ids, its disk and its config.json, and the launcher's command that would mount them.

        Raises: EngineError.
        """
        cgroup = BoxCgroup(id, find_hierarchies())
        self._refuse_machine(cgroup.hierarchies)
        self._prepare(cgroup)
        box = Box(
            id=id,
            engine=self.name,
            folder=folder,
            socket=folder / "keeper.sock",
            state={"first_id": ids.lease(RUN / "ids", id)},
        )
        point("create.leased")
        try:
            limits = spec.limits
            disks_in(settings.home()).take(folder / "disk.img", disk_mb=limits.disk_mb, inodes=limits.inodes)
            point("create.disk")
            self._write_bundle(box, spec, cgroup)
            return box, self._launch_options(box, spec, image, cgroup)
        except BaseException:
            self.delete(box)
            raise

    def delete(self, box: Box) -> None:
        """End it and remove everything but its folder."""
        cgroup = BoxCgroup(box.id, find_hierarchies())
        cgroup.kill()
        point("delete.killed")
        cgroup.remove()
        point("delete.cgroups")
        self._remove_state(box)
        (box.folder / "disk.img").unlink(missing_ok=True)
        ids.release(RUN / "ids", box.id)
        point("delete.released")

    def _remove_state(self, box: Box) -> None:
        for runtime in RUNTIMES:
            remove_folder(self.run / runtime / box.id)
        for name in ("keeper.sock", "config.json"):
            (box.folder / name).unlink(missing_ok=True)

    def why_ended(self, box: Box) -> str:
        """By the mark that the keeper leaves, and by the kernel's count."""
        cgroup = BoxCgroup(box.id, find_hierarchies())
        mark = read_mark(cgroup.tree / "runs")
        if mark or not cgroup.tree.exists():
            return mark or "killed"
        return "out_of_memory" if cgroup.counters().read().oom_kills else "killed"

    def is_alive(self, box: Box) -> bool:
        return BoxCgroup(box.id, find_hierarchies()).is_populated()

    def first_process(self, box: Box) -> int | None:
        return BoxCgroup(box.id, find_hierarchies()).first_process()

    def counters(self, box: Box) -> Counters:
        return BoxCgroup(box.id, find_hierarchies()).counters()

    def usage(self, box: Box) -> EngineUsage:
        return EngineUsage(*BoxCgroup(box.id, find_hierarchies()).usage())

    def _try_box(self) -> Fact:
        import tempfile

        without = frozenset(missing_limits(self.abilities()))
        # Beside the stock of disks: one of them is moved here.
        with tempfile.TemporaryDirectory(dir=settings.home(), prefix="try-") as scratch:
            folder, rootfs = Path(scratch, "box"), Path(scratch, "rootfs")
            folder.mkdir()
            rootfs.mkdir()
            try:
                box = self.create(
                    random_id(),
                    folder,
                    SandboxSpec(without=without),
                    Image(name="empty", rootfs=rootfs),
                )
            except EngineError as error:
                return Fact("box", False, str(error))
            self.delete(box)
        return Fact("box", True, f"{self.runtime.name} starts one")

    def _prepare(self, cgroup: BoxCgroup) -> None:
        if self._is_prepared:
            return
        cgroup.prepare()
        for name in ("disk", "lower", "root"):
            (self.run / name).mkdir(mode=0o755, parents=True, exist_ok=True)
        (self.run / "userns").touch(mode=0o600)
        self._state.mkdir(mode=0o700, exist_ok=True)
        self._is_prepared = True

    def _refuse_machine(self, hierarchies: Hierarchies) -> None:
        missing = hierarchies.missing()
        if missing:
            raise EngineError(f"this machine's cgroups ({hierarchies.kind}) lack {', '.join(missing)}")

    def _write_bundle(self, box: Box, spec: SandboxSpec, cgroup: BoxCgroup) -> None:
        argv = [KEEPER, "--listen-fd", str(LISTEN_FD), "--runs-fd", str(RUNS_FD)]
        if not cgroup.hierarchies.unified:
            argv += ["--join-fd", str(JOIN_FD)]
        argv += self._common_options(spec)
        document = config.make_config(
            spec,
            root=str(RUN / "root"),
            users=self._users(box),
            keeper_argv=argv,
            cgroup=cgroup.path,
        )
        self._save_config(box.folder, document, spec)

    def _common_options(self, spec: SandboxSpec) -> list[str]:
        """What every keeper is told."""
        return ["--root-caps", f"{config.root_capability_mask(spec):x}", *life_options(spec)]

    def _save_config(self, folder: Path, document: dict[str, Any], spec: SandboxSpec) -> None:
        compiled = self._filter(spec)
        if compiled:
            compiled.add_to(document)
        (folder / "config.json").write_text(json.dumps(document))

    def _keep_filter(self, id: str, spec: SandboxSpec) -> None:
        compiled = self._filter(spec)
        if compiled and not compiled.path.exists():
            compiled.keep(self._state / id)

    def _users(self, box: Box) -> config.UserNamespace:
        ids = ((0, int(box.state["first_id"]), config.IDS),)
        return config.UserNamespace(ids, path=str(RUN / "userns"))

    def _filter(self, spec: SandboxSpec) -> CompiledFilter | None:
        if not self.runtime.takes_filter:
            return None
        return find_filter(self.run / "filters", self._find_program(), config.allows_set_id(spec))

    def _find_program(self) -> str:
        name = self.runtime.name
        self._program = self._program or find_program(name)
        if self._program is None:
            raise EngineError(f"the OCI runtime {name} is not installed; install it: apt-get install {name}")
        return self._program

    def _launch_options(self, box: Box, spec: SandboxSpec, image: Image, cgroup: BoxCgroup) -> list[str]:
        hierarchies = cgroup.hierarchies
        command = [str(settings.launch_path()), "--folder", str(box.folder), "--mounts", str(RUN)]
        command += maker_options()
        command += ["--lower", str(image.rootfs), "--user", str(0 if spec.user == "root" else 1000)]
        command += ["--first-id", str(box.state["first_id"])]
        command += ["--tree-cgroup", str(cgroup.tree)]
        if not hierarchies.unified:
            command += ["--pids-cgroup", str(cgroup.folder("pids")), "--pids", str(spec.limits.pids)]
        if hidden := self._mount_to_hide():
            command += ["--hide", str(hidden)]
        return [*command, *ceiling_options(spec.limits), *bind_options(spec, image)]

    def _mount_to_hide(self) -> Path | None:
        return find_v2_beside_v1() if self.runtime.refuses_hybrid else None


def maker_options() -> list[str]:
    """The launcher's about the process that starts it."""
    return ["--maker", str(os.getpid()), *launcher_options()]


def ceiling_options(limits: Limits) -> list[str]:
    """The launcher's about what each process may have at most."""
    ceilings = config.make_ceilings(limits)
    return [word for number, value in ceilings.items() for word in ("--ceiling", str(number), str(value))]


def bind_options(spec: SandboxSpec, image: Image) -> list[str]:
    """The launcher's about what of this machine is seen in the box."""
    options: list[str] = []
    for bind in image.binds:
        options += ["--bind", "r", str(bind.source), bind.target]
    options += ["--bind", "r", str(settings.keeper_path()), KEEPER]
    if spec.workspace is not None and spec.workspace_access != "none":
        flags = "fow" if spec.workspace_access == "rw" else "fo"
        options += ["--bind", flags, spec.workspace, "/workspace"]
    return options


def engine_on(runtime: str) -> OciEngine:
    """The engine on that runtime, for who this process is."""
    if os.geteuid() == 0:
        return OciEngine(runtime)
    from cloche.engines.rootless import RootlessEngine

    return RootlessEngine(runtime)


def default_engine() -> OciEngine:
    """The fastest that works on this machine; tried once after each boot or change of a runtime.

    Raises: EngineError.
    """
    problems: list[str] = []
    for engine in map(engine_on, RUNTIMES):
        program = find_program(engine.runtime.name)
        if program is None:
            problems.append(f"{engine.runtime.name} is not installed")
            continue
        mark = engine.run / f"works-{engine.runtime.name}"
        if mark.exists() and mark.read_text() == stamp(program):
            return engine
        failed = [fact for fact in engine.check() if fact.needed and not fact.ok]
        if not failed:
            mark.write_text(stamp(program))
            return engine
        problems += [f"{fact.name}: {fact.found}" + (f"; {fact.repair}" if fact.repair else "") for fact in failed]
    raise EngineError(
        "no OCI runtime can make a box here: " + "; ".join(problems) + "; install one: apt-get install crun"
    )


@cache
def disks_in(home: Path) -> Disks:
    """The disks of that data folder."""
    return Disks(home / "disks")
