"""What a box leaves on this machine is nothing, however it ended (promise 7)."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.engines.cgroups import find_hierarchies
from tests.security.lab import RUN, attack, keeper_of, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

BOXES = (200, 1000) if "CLOCHE_SOAK" in os.environ else (200,)


def folders_of_cgroups() -> Iterator[str]:
    hierarchies = find_hierarchies()
    for mount in {*hierarchies.v1.values(), *filter(None, [hierarchies.v2])}:
        yield from (str(folder) for folder in mount.rglob("cloche/*") if folder.is_dir())


def mounts_and_namespaces() -> Iterator[str]:
    seen: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            seen |= {
                os.readlink(process / "ns" / kind) for kind in ("mnt", "net", "user", "pid", "ipc", "uts", "cgroup")
            }
            for line in (process / "mountinfo").read_text().splitlines():
                source = line.partition(" - ")[2].split()[1]
                seen |= {f"mount of {source}"} if source.startswith("/dev/loop") else set()
    yield from seen


def loop_devices(home: Path) -> Iterator[str]:
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            if str(home) in backing.read_text():
                yield str(backing)


def keepers(home: Path) -> Iterator[str]:
    """Processes of this data folder's boxes, and launchers and runtimes at work for them."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(str(home) in word for word in words) and int(process.name) != os.getpid():
                yield f"{process.name} {words}"


def files(home: Path) -> Iterator[str]:
    """All but the stock of empty disks, which is kept on purpose."""
    yield from (str(path) for path in home.rglob("*") if home / "disks" not in path.parents)


def look_around(home: Path, ids: set[str]) -> Counter[str]:
    """What there is of the boxes `ids`, and what cannot be told apart by their names."""
    found = [*loop_devices(home), *keepers(home), *files(home)]
    found += [name for name in folders_of_cgroups() if Path(name).name in ids]
    for folder in (RUN / "ids", RUN / "crun", RUN / "runc"):
        if folder.exists():
            found += [str(p) for p in folder.iterdir() if p.name in ids or (p.is_symlink() and os.readlink(p) in ids)]
    return Counter(found)


def namespaces_of(pid: int) -> set[str]:
    return {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("mnt", "net", "user", "pid", "ipc", "uts", "cgroup")}


@pytest.mark.promise("leaves_nothing")
@pytest.mark.timeout(1800 if "CLOCHE_SOAK" in os.environ else 120)
@pytest.mark.parametrize("count", BOXES)
def test_boxes_leave_nothing(engine: str, lab_home: Path, count: int) -> None:
    Sandbox.create(engine=engine, disk_mb=64).kill()
    before = look_around(lab_home, set())
    ids: set[str] = set()
    namespaces: set[str] = set()
    for number in range(count):
        with Sandbox.create(engine=engine, disk_mb=64, user="root" if number % 5 == 0 else "user") as box:
            ids.add(box.id)
            namespaces |= namespaces_of(keeper_of(box))
            box.commands.run("echo x > /tmp/x; (sleep 60 &) ; true")
    wait_until(lambda: look_around(lab_home, ids) == before, "all is as it was")
    wait_until(lambda: not namespaces & set(mounts_and_namespaces()), "no namespace is left")


@pytest.mark.promise("leaves_nothing")
@pytest.mark.parametrize("way", ["kill the keeper", "kill all", "twice", "while it runs", "not at all used"])
def test_however_a_box_ends_nothing_is_left(engine: str, lab_home: Path, way: str) -> None:
    Sandbox.create(engine=engine).kill()
    before = look_around(lab_home, set())
    box = Sandbox.create(engine=engine)
    if way == "kill the keeper":
        os.kill(keeper_of(box), signal.SIGKILL)
    if way == "kill all":
        box.commands.run(["sleep", "60"], background=True)
        box.commands.run("kill -9 -1", timeout=2)
    if way == "while it runs":
        box.commands.run("while :; do mkdir -p /tmp/a/b/c; rm -rf /tmp/a; done", background=True)
    assert box.kill()
    if way == "twice":
        assert not box.kill()
    wait_until(lambda: look_around(lab_home, {box.id}) == before, "all is as it was")


def test_deep_folders_and_odd_names_do_not_stay(engine: str, lab_home: Path) -> None:
    Sandbox.create(engine=engine).kill()
    before = look_around(lab_home, set())
    with Sandbox.create(engine=engine) as box:
        source = (
            "import os\nfor i in range(400):\n os.mkdir('d'); os.chdir('d')\nos.mkfifo(b'\\xff\\n'); os.chmod('.', 0)"
        )
        box.commands.run(["python3", "-c", source], cwd="/tmp").check()
        attack(box, "bomb", "shm")
    wait_until(lambda: look_around(lab_home, {box.id}) == before, "all is as it was")


def test_a_program_that_ends_leaves_its_box_and_another_finds_and_ends_it(engine: str, lab_home: Path) -> None:
    import subprocess
    import sys

    Sandbox.create(engine=engine).kill()
    before = look_around(lab_home, set())
    source = "import sys; from cloche import Sandbox; print(Sandbox.create(engine=sys.argv[1]).id)"
    done = subprocess.run([sys.executable, "-c", source, engine], capture_output=True, text=True, check=True)
    box = Sandbox.connect(done.stdout.strip())
    assert box.commands.run(["echo", "here"]).stdout == "here\n"
    box.kill()
    wait_until(lambda: look_around(lab_home, {box.id}) == before, "all is as it was")
