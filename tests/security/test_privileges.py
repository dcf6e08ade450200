"""What a process in a box is: nobody, with nothing, for good (promise 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.security.lab import attack, run_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox

SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
ROOT_MAY = sum(1 << number for number in (0, 1, 3, 4, 6, 7))


def status_of(box: Sandbox, pid: str = "self") -> dict[str, str]:
    text = box.commands.run(["cat", f"/proc/{pid}/status"]).check().stdout
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


@pytest.mark.promise("no_privileges")
def test_the_user_has_no_capability_and_can_gain_none(sandbox: Sandbox) -> None:
    status = status_of(sandbox)
    assert {status[name] for name in SETS} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Uid"].split() == status["Gid"].split() == ["1000"] * 4
    assert status["Groups"] in ("", "1000")


@pytest.mark.promise("user_root")
def test_root_has_the_six_of_package_managers_and_no_more(make: Callable[..., Sandbox]) -> None:
    status = status_of(make(user="root"))
    assert all(int(status[name], 16) & ~ROOT_MAY == 0 for name in SETS)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_keeper_keeps_what_it_needs_and_no_more(sandbox: Sandbox) -> None:
    setgid, setuid, setpcap, kill = 6, 7, 8, 5
    needed = sum(1 << number for number in (setgid, setuid, setpcap, kill))
    assert int(status_of(sandbox, "1")["CapEff"], 16) & ~needed == 0


@pytest.mark.promise("no_privileges")
def test_setuid_programs_of_the_image_have_no_effect(sandbox: Sandbox) -> None:
    for program in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount"):
        result = sandbox.commands.run(["sh", "-c", f"[ -e {program} ] && {program} -c id </dev/null; id -u"])
        assert result.stdout.split()[-1] == "1000"
        assert "uid=0" not in result.stdout


def test_a_setuid_program_of_root_has_no_effect_on_the_user(make: Callable[..., Sandbox]) -> None:
    box = make(user="root")
    box.commands.run("cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id").check()
    assert "euid" not in box.commands.run(["/tmp/id"], user="user").check().stdout


@pytest.mark.promise("no_privileges")
def test_ids_cannot_be_changed_by_the_user(sandbox: Sandbox) -> None:
    source = """
import os
for call, args in [(os.setuid, (0,)), (os.setgid, (0,)), (os.setresuid, (0, 0, 0)), (os.setgroups, ([0],)),
                   (os.chown, ('/tmp', 1000, 1000)), (os.setreuid, (65534, 65534))]:
    try:
        call(*args)
    except OSError:
        continue
    print(call.__name__)
"""
    assert run_python(sandbox, source).check().stdout == ""


@pytest.mark.promise("own_uids")
def test_the_ids_of_a_box_are_its_own_and_mean_nobody_outside(make: Callable[..., Sandbox]) -> None:
    maps = [make().commands.run(["cat", "/proc/self/uid_map"]).check().stdout.split() for _ in range(2)]
    assert [int(found[0]) for found in maps] == [0, 0]
    first, second = (int(found[1]) for found in maps)
    assert abs(first - second) >= 65536
    assert min(first, second) > 1 << 20


@pytest.mark.promise("own_uids")
@pytest.mark.parametrize("line", ["echo 0 0 1 > uid_map", "echo 0 0 1 > gid_map", "echo allow > setgroups"])
def test_a_program_cannot_map_more_ids(any_box: Sandbox, line: str) -> None:
    assert any_box.commands.run(f"cd /proc/self && {line}").exit_code != 0


@pytest.mark.parametrize("score", [-1000, -1])
def test_a_program_cannot_make_itself_dearer_to_the_kernel_than_the_keeper(sandbox: Sandbox, score: int) -> None:
    keeper = int(sandbox.commands.run(["cat", "/proc/1/oom_score_adj"]).check().stdout)
    result = sandbox.commands.run(
        f"cat /proc/self/oom_score_adj; echo {min(keeper, 0) + score} > /proc/self/oom_score_adj"
    )
    assert result.stdout == "1000\n"
    assert result.exit_code != 0


def test_no_program_sets_limits_of_the_keeper(any_box: Sandbox) -> None:
    assert attack(any_box, "strangle").check().stdout == ""


def test_ceilings_stand_and_cannot_be_raised(any_box: Sandbox) -> None:
    source = """
import resource as r
for name, most in [('NOFILE', 4096), ('MEMLOCK', 65536), ('MSGQUEUE', 0), ('SIGPENDING', 1024), ('RTPRIO', 0), ('CORE', 1)]:
    limit = getattr(r, 'RLIMIT_' + name)
    if r.getrlimit(limit)[1] > most:
        print(name, r.getrlimit(limit))
    try:
        r.setrlimit(limit, (most + 1, most + 1))
    except (OSError, ValueError):
        continue
    if r.getrlimit(limit)[1] > most:
        print(name, 'was raised')
"""
    assert run_python(any_box, source).check().stdout == ""


def test_a_crash_starts_no_handler_of_the_host(any_box: Sandbox) -> None:
    """Only the limit 1 says so to the kernel: with 0, a core_pattern that is a pipe is still used."""
    source = "import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))"
    assert run_python(any_box, source).check().stdout == "(1, 1)\n"
