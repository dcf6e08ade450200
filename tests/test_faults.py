"""kill -9 of the making process, at every named step and at random ones: nothing is lost, nothing is left."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox, faults
from cloche.errors import NotFound, SandboxError
from cloche.sandboxes import boxes
from cloche.sandboxes.sweep import sweep
from cloche.store.database import database_in
from tests.security.test_leftovers import look_around

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(faults.__file__).parent
RANDOM_KILLS = 200
LAUNCHER_STEPS = 40
MAKE_AND_DELETE = """
import sys
from cloche import Sandbox
box = Sandbox.create(engine=sys.argv[1])
print(box.id, flush=True)
box.kill()
print("gone", flush=True)
"""


@pytest.fixture(scope="module")
def faulty_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One data folder for all of them: what one leaves, the next would see."""
    home = tmp_path_factory.mktemp("h", numbered=True)
    for folder in (home, *home.parents):
        with suppress(PermissionError):
            folder.chmod(folder.stat().st_mode | 0o711)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOCHE_HOME", str(home))
        Sandbox.create().kill()
        yield home


def start(code: str, *args: str, fault: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "CLOCHE_FAULT": fault}
    command = [sys.executable, "-c", code, *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def check_nothing_is_left(home: Path, said: str = "") -> None:
    """After the sweeper: a box that was acknowledged and not deleted is there and works, of all others nothing is."""
    sweep()
    ids = said.split()[:1]
    for id in ids:
        row = boxes.rows().get(id)
        assert row is not None
        assert row.state == "running" or row.reason == "deleted"
    for box in Sandbox.list():
        assert box.commands.run(["echo", "alive"]).stdout == "alive\n"
        box.kill()
    assert boxes.rows().present() == []
    ever = {row["id"] for row in database_in(home).query("SELECT id FROM boxes")}
    usual = {str(home / name) for name in os.listdir(home)} | {str(path) for path in (home / "images").rglob("*")}
    assert [name for name in look_around(home, ever) if name not in usual] == []


@pytest.mark.parametrize("engine", ["embedded:crun", "embedded:runc", "host"])
@pytest.mark.parametrize("name", faults.POINTS)
def test_killed_at_a_named_step_nothing_is_left(faulty_home: Path, engine: str, name: str) -> None:
    with start(MAKE_AND_DELETE, engine, fault=name) as process:
        said, complaint = process.communicate(timeout=60)
    reached = engine != "host" or name not in OF_THE_EMBEDDED_ENGINE
    assert process.returncode == (-signal.SIGKILL if reached else 0), complaint
    check_nothing_is_left(faulty_home, said)


OF_THE_EMBEDDED_ENGINE = {
    "create.leased",
    "create.disk",
    "create.planned",
    "create.launched",
    "create.verified",
    "delete.killed",
    "delete.cgroups",
    "delete.released",
}


@pytest.mark.parametrize("engine", ["embedded:crun", "embedded:runc"])
@pytest.mark.timeout(300)
def test_killed_at_each_step_of_the_launcher_nothing_is_left(faulty_home: Path, engine: str) -> None:
    for step in range(1, LAUNCHER_STEPS):
        with start(MAKE_AND_DELETE, engine, fault=f"{faults.LAUNCHER}{step}") as process:
            said, complaint = process.communicate(timeout=60)
        if process.returncode == 0:
            assert step > 10, "the launcher has more steps than that"
            break
        assert process.returncode == -signal.SIGKILL, complaint
        check_nothing_is_left(faulty_home, said)
    else:
        pytest.fail("the launcher has more steps than were tried")


@pytest.mark.timeout(600)
def test_killed_at_random_moments_nothing_is_left(faulty_home: Path) -> None:
    chance = random.Random(7)
    with start(MAKE_AND_DELETE, "embedded") as process:
        began = time.monotonic()
        process.communicate(timeout=60)
        usual = time.monotonic() - began
    for turn in range(RANDOM_KILLS):
        with start(MAKE_AND_DELETE, "embedded:crun") as process:
            deadline = time.monotonic() + chance.uniform(0.3, 1.1) * usual
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.0005)
            process.kill()
            said, _ = process.communicate(timeout=60)
        if turn % 10 == 9 or said:
            check_nothing_is_left(faulty_home, said)
    check_nothing_is_left(faulty_home)


def test_a_box_that_belongs_to_a_program_ends_with_it(faulty_home: Path) -> None:
    code = "from cloche import Sandbox; print(Sandbox.create(bound=True).id, flush=True); input()"
    with start(code) as process:
        assert process.stdout is not None
        id = process.stdout.readline().strip()
        sweep()
        assert Sandbox.connect(id).is_running()
        process.kill()
    assert sweep() == {id: "maker_died"}
    with pytest.raises(NotFound, match="the process that made it, or that it belonged to, died"):
        Sandbox.connect(id)
    check_nothing_is_left(faulty_home)


def test_two_programs_that_use_and_delete_one_box_do_each_other_no_harm(faulty_home: Path) -> None:
    code = """
import sys
from cloche import Sandbox
from cloche.errors import ClocheError
box, used = Sandbox.connect(sys.argv[1]), 0
try:
    while used < 500:
        box.commands.run(["true"])
        used += 1
        if used == 5: print("ready", flush=True)
except ClocheError as error:
    print(type(error).__name__)
print(box.kill())
"""
    box = Sandbox.create()
    users = [start(code, box.id) for _ in range(3)]
    try:
        for user in users:
            assert user.stdout is not None
            assert user.stdout.readline() == "ready\n"
        assert box.kill()
        for user in users:
            said, complaint = user.communicate(timeout=60)
            assert re.fullmatch(r"(SandboxError|SandboxNotFound)\nFalse\n", said), said + complaint
    finally:
        for user in users:
            user.kill()
            user.communicate()
    check_nothing_is_left(faulty_home)


def test_of_two_that_make_a_box_of_one_name_at_once_one_gets_it(faulty_home: Path) -> None:
    code = "from cloche import Sandbox; print(Sandbox.create(name='the one').id)"
    makers = [start(code) for _ in range(3)]
    answers = [maker.communicate(timeout=60) for maker in makers]
    made = [said.strip() for said, _ in answers if said]
    assert len(made) == 1
    assert sum(f"which the sandbox {made[0]} has" in complaint for _, complaint in answers) == 2
    Sandbox.connect(made[0]).kill()
    check_nothing_is_left(faulty_home)


def test_every_point_is_in_the_code_and_every_one_in_the_code_is_listed() -> None:
    sources = (path.read_text() for path in PACKAGE.rglob("*.py"))
    used = {name for source in sources for name in re.findall(r'\bpoint\("([a-z.]+)"\)', source)}
    assert used == set(faults.POINTS)


def test_a_deleted_box_says_so_to_who_still_holds_it(faulty_home: Path) -> None:
    with Sandbox.create(engine="host") as box:
        other = Sandbox.connect(box.id)
        box.kill()
        with pytest.raises((SandboxError, NotFound), match="deleted"):
            other.commands.run(["true"])
    check_nothing_is_left(faulty_home)
