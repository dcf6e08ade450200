"""The life of a box, and what it can be asked (product lines 9 to 12, and what the README promises)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.engines import engine_named
from cloche.engines.abilities import ABILITIES, PROMISES
from cloche.errors import (
    FileError,
    ImageNotFound,
    InvalidRequest,
    NotFound,
    SandboxError,
    SandboxNotFound,
    Unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Sandbox]
    MakeOrRefuse = Callable[..., Sandbox | None]


def test_a_box_is_found_by_its_id(make: Make) -> None:
    box = make(name="my box", env={"A": "1"})
    again = Sandbox.connect(box.id)
    assert (again.id, again.name, again.engine) == (box.id, "my box", box.engine)
    assert again.commands.run("echo $A").stdout == "1\n"
    assert box.id in [found.id for found in Sandbox.list()]


def test_a_box_that_was_killed_is_gone(make: Make) -> None:
    box = make()
    folder = box._record.box.folder  # pyright: ignore[reportPrivateUsage]
    assert box.is_running()
    assert box.kill()
    assert not box.kill()
    assert not box.is_running()
    assert not folder.exists()
    with pytest.raises(SandboxNotFound):
        Sandbox.connect(box.id)
    with pytest.raises(SandboxNotFound, match="it was deleted"):
        box.commands.run("true")


def test_the_end_of_the_block_is_the_end_of_the_box(engine: str) -> None:
    with Sandbox.create(engine=engine) as box:
        box.files.write("deep/" * 100 + "file", "x")
    assert box.id not in [found.id for found in Sandbox.list()]


def test_a_box_in_use_ends_its_users_wait(make: Make) -> None:
    box = make()
    command = box.commands.run(["sleep", "60"], background=True)
    box.kill()
    with pytest.raises((SandboxError, NotFound)):
        command.wait()


@pytest.mark.parametrize("id", ["", "x", "../../etc", "a" * 20, "A" * 20, "a" * 19 + "/"])
def test_an_unknown_id_is_told(shared_home: Path, id: str) -> None:
    del shared_home
    with pytest.raises(SandboxNotFound):
        Sandbox.connect(id)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cpus": 0}, "cpus is 0; at least 0.01"),
        ({"cpus": float("nan")}, "cpus is nan"),
        ({"cpus": 100_000}, "cpus is 100000; at most"),
        ({"memory_mb": -1}, "memory_mb is -1; at least"),
        ({"memory_mb": 1 << 40}, "memory_mb is .*; at most"),
        ({"memory_mb": 1.5}, "a whole number"),
        ({"memory_mb": "512"}, "memory_mb is '512'"),
        ({"memory_mb": True}, "memory_mb is True"),
        ({"disk_mb": 0}, "disk_mb is 0"),
        ({"disk_mb": 1 << 50}, "disk_mb is"),
        ({"inodes": 0}, "inodes is 0"),
        ({"pids": 0}, "pids is 0"),
        ({"pids": 1 << 30}, "pids is"),
        ({"timeout": -1}, "timeout is -1; .*0 for no limit"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"output_bytes": -1}, "output_bytes is -1"),
        ({"output_bytes": 1}, "at least 1024"),
        ({"env": {"A=B": "1"}}, "'A=B'"),
        ({"env": {"A": "\0"}}, "NUL"),
        ({"user": "alice"}, "user is 'alice'"),
        ({"workspace": "relative"}, "an absolute path"),
        ({"workspace": "/no/such/folder"}, "no folder on this machine"),
        ({"workspace": "/"}, "the whole machine"),
        ({"name": "\n"}, "name is"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_made(
    make: Make, options: dict[str, object], reason: str
) -> None:
    before = [box.id for box in Sandbox.list()]
    with pytest.raises(InvalidRequest, match=reason):
        make(**options)
    assert [box.id for box in Sandbox.list()] == before


def test_an_unknown_engine_is_told_with_those_that_are() -> None:
    with pytest.raises(InvalidRequest, match="engine is 'magic'; expected one of: embedded"):
        Sandbox.create(engine="magic")


def test_an_unknown_image_is_told(engine: str, make: Make) -> None:
    expected = Unsupported if engine_named(engine).abilities()["image"].enforced == "no" else ImageNotFound
    with pytest.raises(expected, match="image"):
        make(image="no-such-image")


def test_every_engine_says_how_it_keeps_every_promise() -> None:
    for abilities in ABILITIES.values():
        assert set(abilities) == set(PROMISES)
        assert all(ability.reason for ability in abilities.values())


def test_no_limit_of_time_and_output_can_be_had(make: Make) -> None:
    box = make(timeout=0, output_bytes=0)
    assert len(box.commands.run(["head", "-c", "3000000", "/dev/zero"]).stdout) == 3_000_000


def test_the_boxs_own_limits_of_time_and_output_hold(make: Make) -> None:
    box = make(timeout=0.3, output_bytes=2048)
    assert box.commands.run(["sleep", "9"]).limit_hit == "timeout"
    assert box.commands.run(["seq", "10000"]).limit_hit == "output_bytes"


def test_memory_is_limited(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("memory_mb", memory_mb=64)
    if box is None:
        return
    result = box.commands.run(["python3", "-c", "x = b'x' * (300 << 20)"])
    assert (result.limit_hit, result.message) == ("memory_mb", "out of memory: the limit is 64 MB; raise memory_mb")
    assert box.commands.run("echo lives on").stdout == "lives on\n"
    assert box.usage().oom_kills >= 1


def test_processes_are_limited(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("pids", pids=24)
    if box is None:
        return
    result = box.commands.run("for i in $(seq 60); do sleep 5 & done; wait", timeout=3)
    assert result.limit_hit in ("pids", "timeout")
    assert box.usage().pids_refused >= 1
    assert box.commands.run(["true"]).ok


def test_a_fork_bomb_ends_with_its_time(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("pids", pids=32)
    if box is None:
        return
    box.commands.run(["bash", "-c", "f() { f | f & }; f; sleep 60"], timeout=1)
    assert box.commands.run("echo lives on", timeout=10).stdout == "lives on\n"


def test_the_disk_is_limited(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("disk_mb", disk_mb=32)
    if box is None:
        return
    result = box.commands.run("head -c 100000000 /dev/zero > full")
    assert (result.limit_hit, result.message) == ("disk_mb", "out of disk: the limit is 32 MB; raise disk_mb")
    with pytest.raises(FileError, match="No space left"):
        box.files.write("more", bytes(1 << 20))


@pytest.mark.promise("inodes")
def test_files_are_limited_in_number(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("inodes", inodes=200)
    if box is None:
        return
    result = box.commands.run("for i in $(seq 400); do : > file$i || exit 1; done")
    assert (result.limit_hit, result.ok) == ("inodes", False)


@pytest.mark.promise("cpus")
def test_cpu_time_is_limited(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("cpus", cpus=0.25)
    if box is None:
        return
    result = box.commands.run("while :; do :; done", timeout=2)
    assert result.cpu_seconds < 1.0


@pytest.mark.promise("user_root")
def test_root_is_had_where_it_was_asked_for(make_or_refuse: MakeOrRefuse) -> None:
    box = make_or_refuse("user_root", user="root")
    if box is None:
        return
    assert box.commands.run("id -u; echo $HOME").stdout == "0\n/root\n"
    assert box.commands.run("id -u; echo $HOME", user="user").stdout == "1000\n/home/user\n"


def test_the_ordinary_user_is_what_the_engine_says(engine: str, sandbox: Sandbox) -> None:
    expected = 1000 if engine_named(engine).abilities()["own_uids"].enforced == "kernel" else os.geteuid()
    assert sandbox.commands.run(["id", "-u"]).stdout == f"{expected}\n"


@pytest.mark.parametrize("access", ["ro", "rw"])
def test_a_workspace_is_seen_as_it_was_asked_for(make_or_refuse: MakeOrRefuse, tmp_path: Path, access: str) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "file").write_text("from outside")
    box = make_or_refuse("workspace", workspace=f"{tmp_path}:{access}")
    if box is None:
        return
    assert box.commands.run("pwd; cat file").stdout == "/workspace\nfrom outside"
    assert box.commands.run("echo x > made").ok == (access == "rw")
    assert (tmp_path / "made").exists() == (access == "rw")


def test_there_is_no_network_where_that_is_promised(engine: str, sandbox: Sandbox) -> None:
    names = sandbox.commands.run(
        "ls /sys/class/net 2>/dev/null || awk -F: 'NR > 2 { print $1 }' /proc/net/dev"
    ).stdout.split()
    if engine_named(engine).abilities()["network_none"].enforced == "kernel":
        assert names == ["lo"]
    else:
        assert "lo" in names


def test_the_host_is_out_of_sight_where_that_is_promised(engine: str, sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o644)
    seen = sandbox.files.exists(str(secret))
    assert seen == (engine_named(engine).abilities()["isolation"].enforced == "no")


def test_an_init_script_runs_first(make: Make) -> None:
    box = make(init_script="echo made > by-init; exit 0", env={"X": "1"})
    assert box.files.read("by-init") == "made\n"


def test_an_init_script_that_fails_leaves_no_box(make: Make) -> None:
    before = [box.id for box in Sandbox.list()]
    with pytest.raises(SandboxError, match=r"(?s)exit code 3.*what went wrong"):
        make(init_script="echo what went wrong >&2; exit 3")
    assert [box.id for box in Sandbox.list()] == before


def test_usage_is_told(sandbox: Sandbox) -> None:
    usage = sandbox.usage()
    assert usage.disk_free_bytes > 0
    assert usage.processes >= 0
    assert usage.oom_kills == 0


def test_a_box_whose_processes_are_all_killed_goes_on(make: Make) -> None:
    box = make()
    command = box.commands.run(["sleep", "60"], background=True)
    for process in box.commands.list():
        box.commands.kill(process.pid)
    assert command.wait().signal == 9
    assert box.commands.run(["echo", "still here"]).stdout == "still here\n"
