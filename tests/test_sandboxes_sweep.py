"""Bad luck of every kind, and what is made of it afterwards."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.errors import ClocheError, EngineError, SandboxError, SandboxNotFound
from cloche.sandboxes import boxes
from cloche.sandboxes.sweep import STAMP, sweep, sweep_now_and_then
from cloche.store.database import FILE, database_in
from tests.security.lab import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ENGINES = ("embedded:crun", "host")


def works(box: Sandbox) -> bool:
    return box.commands.run(["echo", "alive"]).stdout == "alive\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("option", "reason"), [("idle_timeout", "idle"), ("lifetime", "end_of_life")])
def test_a_box_ends_by_itself_and_everyone_is_told_why(home: Path, engine: str, option: str, reason: str) -> None:
    box = Sandbox.create(engine=engine, **{option: 0.4})  # pyright: ignore[reportArgumentType]
    wait_until(lambda: not box.is_running(), "it has ended")
    with pytest.raises(SandboxError, match=boxes.REASONS[reason]):
        box.commands.run(["true"])
    assert sweep() == {box.id: reason}
    with pytest.raises(SandboxNotFound, match=boxes.REASONS[reason]):
        Sandbox.connect(box.id)
    assert not list((home / "boxes").iterdir())


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_restart_of_the_machine_nothing_is_taken_for_alive(home: Path, engine: str) -> None:
    box = Sandbox.create(engine=engine)
    with database_in(home).transaction() as connection:
        connection.execute("UPDATE boxes SET boot = 'another'")
    (home / STAMP).write_text("another")
    sweep_now_and_then()
    with pytest.raises(SandboxNotFound, match="the machine was restarted"):
        Sandbox.connect(box.id)
    assert not box.is_running()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("harm", ["gone", "no database", "empty"])
def test_boxes_outlive_the_loss_of_their_database(home: Path, engine: str, harm: str) -> None:
    box = Sandbox.create(engine=engine, name="kept")
    database_in(home).close()
    for path in home.glob(f"{FILE}*"):
        path.unlink()
    if harm != "gone":
        (home / FILE).write_bytes(b"" if harm == "empty" else b"no database" * 1000)
    assert sweep() == {}
    assert [(found.id, found.name) for found in Sandbox.list()] == [(box.id, "kept")]
    assert works(box)
    assert box.kill()
    assert not list((home / "boxes").iterdir())


def test_a_jump_of_the_clock_ends_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Sandbox.create(engine="host", idle_timeout=60)
    now = time.time()
    for years in (10, -10, 0):
        monkeypatch.setattr(time, "time", lambda years=years: now + years * 365 * 86400)
        sweep_now_and_then()
        assert sweep() == {}
        assert works(box)
        assert [found.id for found in Sandbox.list()] == [box.id]
    assert (home / STAMP).exists()
    box.kill()


def test_what_was_swept_is_not_swept_again_within_a_minute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_now_and_then()
    monkeypatch.setattr("cloche.sandboxes.sweep.sweep", lambda: pytest.fail("it was swept a moment ago"))
    sweep_now_and_then()
    assert (home / STAMP).exists()


def test_a_folder_that_belongs_to_nobody_is_removed_and_other_files_stay(home: Path) -> None:
    (home / "boxes" / ("b" * 20)).mkdir(parents=True)
    (home / "boxes" / "notes.txt").write_text("mine")
    assert sweep() == {"b" * 20: "maker_died"}
    assert [path.name for path in (home / "boxes").iterdir()] == ["notes.txt"]


def test_one_box_that_resists_holds_up_no_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    made = [Sandbox.create(engine="host", idle_timeout=0.2) for _ in range(3)]
    wait_until(lambda: not any(box.is_running() for box in made), "all have ended")
    end = boxes.end

    def resist(box: boxes.Box, reason: str) -> bool:
        if box.id == made[0].id:
            raise EngineError("this one resists")
        return end(box, reason)

    monkeypatch.setattr(boxes, "end", resist)
    assert set(sweep()) == {made[1].id, made[2].id}
    monkeypatch.undo()
    boxes.delete(boxes.find(made[0].id)) if (boxes.boxes_folder() / made[0].id).exists() else None


@contextmanager
def mounted(size: str) -> Generator[Path]:
    """A file system of its own, of that size."""
    folder = Path(tempfile.mkdtemp(prefix="cl-"))
    folder.chmod(0o711)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "cloche-test", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


@pytest.fixture
def small_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with mounted("64m") as folder:
        monkeypatch.setenv("CLOCHE_HOME", str(folder))
        yield folder


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_disk_is_told_and_once_there_is_room_all_goes_on(small_home: Path, engine: str) -> None:
    Sandbox.create(engine=engine).kill()
    ballast = small_home / "ballast"
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(1 << 16))
            file.flush()
    for stock in (small_home / "disks").glob("*/*"):
        stock.unlink()
    with suppress(OSError), ballast.open("ab") as file:
        while True:
            file.write(bytes(1 << 12))
            file.flush()
    with pytest.raises(ClocheError, match=r"(?i)no space|full"):
        Sandbox.create(engine=engine)
    ballast.unlink()
    with Sandbox.create(engine=engine) as box:
        assert works(box)
    sweep()
    assert not list((small_home / "boxes").iterdir())


@pytest.mark.parametrize("engine", ENGINES)
def test_with_a_full_disk_sandboxes_are_removed_all_the_same(small_home: Path, engine: str) -> None:
    box, other = Sandbox.create(engine=engine, name="one"), Sandbox.create(engine=engine)
    for size in (1 << 16, 1 << 10, 1):
        with suppress(OSError), (small_home / "ballast").open("ab", buffering=0) as file:
            while True:
                file.write(bytes(size))
    assert box.kill()
    code = f"from cloche.cli.main import main\nassert main(['rm', {other.id!r}]) == 0"
    done = in_a_program(code, small_home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list((small_home / "boxes").iterdir())
    (small_home / "ballast").unlink()
    assert Sandbox.list() == []


def test_a_home_that_cannot_be_written_is_told(small_home: Path) -> None:
    Sandbox.create(engine="host").kill()
    database_in(small_home).close()
    subprocess.run(["mount", "-o", "remount,ro", small_home], check=True)
    with pytest.raises(ClocheError, match=r"(?i)read-?only|writable"):
        Sandbox.create(engine="host")


def in_a_program(code: str, home: Path, **limits: int) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))

    environment = {**os.environ, "CLOCHE_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, preexec_fn=limit
    )


def test_a_copy_of_a_data_folder_has_none_of_its_sandboxes(home: Path, tmp_path: Path) -> None:
    with Sandbox.create(name="one") as box:
        copy = tmp_path / "copy"
        shutil.copytree(home, copy, symlinks=True, ignore=shutil.ignore_patterns("keeper.sock"))
        code = "from cloche import Sandbox\nfrom cloche.cli.main import main\nassert Sandbox.list() == []\n"
        code += f"assert main(['rm', 'one']) == main(['rm', {box.id!r}]) == 125\n"
        code += "with Sandbox.create(name='one') as other: assert other.commands.run('true').ok\n"
        done = in_a_program(code, copy)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not list((copy / "boxes").iterdir())
        assert works(box)


TELL = """
from cloche import Sandbox
from cloche.errors import ClocheError
import os
{before}
try:
    Sandbox.create(engine="{engine}")
except ClocheError as error:
    print(type(error).__name__, error)
else:
    print("made")
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_without_descriptors_left_it_says_so(home: Path, engine: str) -> None:
    Sandbox.create(engine=engine).kill()
    before = "import cloche.sandboxes.boxes, cloche.sandboxes.sweep, cloche.engines.oci, cloche.engines.host\n"
    before += "cloche.sandboxes.sweep.sweep()\nheld = []\nwhile True:\n"
    before += "    try: held.append(os.open('/dev/null', os.O_RDONLY))\n    except OSError: break\n"
    done = in_a_program(TELL.format(before=before, engine=engine), home, NOFILE=64)
    assert "Too many open files" in done.stdout or "unable to open" in done.stdout, done.stdout + done.stderr
    sweep()
    assert not list((home / "boxes").iterdir())


def test_without_any_oci_runtime_it_says_what_to_install(home: Path) -> None:
    code = TELL.format(before="from cloche.engines import oci\noci.find_program = lambda name: None", engine="embedded")
    assert "apt-get install crun" in in_a_program(code, home).stdout


def test_without_user_namespaces_it_says_which_setting_it_is(home: Path) -> None:
    before = "import ctypes\nctypes.CDLL(None).unshare(0x10000000)\nprint('ready', flush=True)\ninput()\n"
    before += "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
    code = TELL.format(before=before, engine="embedded:crun")
    environment = {**os.environ, "CLOCHE_HOME": str(home)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{program.pid}/{name}").write_text("0 0 4294967295")
        said, complaint = program.communicate("\n", timeout=60)
    assert "sysctl -w user.max_user_namespaces" in said, said + complaint
