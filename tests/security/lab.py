"""What the attacks share: compiling them, putting them into a box, and counting what is on this machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox
    from cloche.engines.cgroups import BoxCgroup
    from cloche.models import CommandResult

ATTACKS = Path(__file__).parent / "attacks"
RUN = Path("/run/cloche")
DEADLINE = 10.0


@cache
def compile_attack(name: str, *defines: str) -> bytes:
    """The static program of attacks/NAME.c."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, name)
        command = ["cc", "-static", "-O1", "-Wall", "-Wextra", "-Werror", *defines, "-o", str(program)]
        subprocess.run([*command, str(ATTACKS / f"{name}.c")], check=True)
        return program.read_bytes()


def attack(box: Sandbox, name: str, *args: str, timeout: float = 20) -> CommandResult:
    """Runs attacks/NAME.c in the box, as the box's user."""
    path = f"/tmp/{name}"
    if not box.files.exists(path):
        box.files.write(path, compile_attack(name), mode=0o755)
    return box.commands.run([path, *args], timeout=timeout)


def run_python(box: Sandbox, source: str, *args: str, timeout: float = 20) -> CommandResult:
    """Runs Python code in the box."""
    return box.commands.run(["python3", "-c", source, *args], timeout=timeout)


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Waits for a condition, with a deadline."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: this did not come true within {DEADLINE:g} s"
        time.sleep(0.01)


def keeper_of(box: Sandbox) -> int:
    """The number on this machine of the process that is the first of the box."""
    record = box._record.box  # pyright: ignore[reportPrivateUsage]
    if "pid" in record.state:
        return int(record.state["pid"])
    tree = tree_of(box)
    leaf = tree / "keeper"  # on pure cgroup v2
    for pid in ((leaf if leaf.is_dir() else tree) / "cgroup.procs").read_text().split():
        status = Path(f"/proc/{pid}/status").read_text()
        if any(line.startswith("NSpid:") and line.split()[-1] == "1" for line in status.splitlines()):
            return int(pid)
    raise AssertionError(f"{box!r} has no first process")


def cgroup_of(box: Sandbox) -> BoxCgroup:
    """The box's cgroups."""
    from cloche.engines.cgroups import BoxCgroup, find_hierarchies

    return BoxCgroup(box.id, find_hierarchies())


def tree_of(box: Sandbox) -> Path:
    """The box's folder in the cgroup2 tree."""
    return cgroup_of(box).tree


def runs_of(box: Sandbox) -> Path:
    """The cgroup of the box's executions; an ordinary user has one on v1, perhaps, and no tree."""
    cgroup = cgroup_of(box)
    return (cgroup.tree if cgroup.has_tree else cgroup.folder("pids")) / "runs"


def is_at_rest(box: Sandbox) -> bool:
    """True where nothing runs but the keeper; the kernel's word, as a list of processes misses one that forks."""
    if not cgroup_of(box).has_tree:
        return not (runs_of(box) / "cgroup.procs").read_text()
    return "populated 0" in (runs_of(box) / "cgroup.events").read_text()


def processes_of(box: Sandbox) -> int:
    """How many processes the kernel counts in the box, but those of the keeper."""
    pids: list[str] = []
    for folder, _, _ in os.walk(runs_of(box)):
        with suppress(OSError):  # the keeper removes the cgroups of runs that have ended
            pids += Path(folder, "cgroup.procs").read_text().split()
    return sum(is_code(pid) for pid in pids)


def is_code(pid: str) -> bool:
    """False for what the keeper has forked and has not become a command yet, and for what has just ended."""
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/.cloche/keeper\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
