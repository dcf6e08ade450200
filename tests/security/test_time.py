"""When its time is up an execution ends, whatever it does, with all that it started (promise 5)."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.security.lab import attack, compile_attack, is_at_rest, keeper_of, runs_of, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import Sandbox

WAYS = ("ignoring", "stopped", "daemon", "spread")


@pytest.mark.promise("timeout")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlasts_its_time(sandbox: Sandbox, way: str) -> None:
    began = time.monotonic()
    result = attack(sandbox, "undying", way, timeout=0.5)
    assert (result.limit_hit, result.stdout) == ("timeout", "here\n")
    assert time.monotonic() - began < 2.5
    wait_until(lambda: is_at_rest(sandbox), "all that it started has ended")


@pytest.mark.promise("timeout")
@pytest.mark.parametrize("way", ["holding", "chain"])
def test_what_stays_behind_its_parent_ends_with_the_time(sandbox: Sandbox, way: str) -> None:
    began = time.monotonic()
    result = attack(sandbox, "undying", way, timeout=1)
    assert result.stdout == "here\n"
    assert time.monotonic() - began < 3
    wait_until(lambda: is_at_rest(sandbox), "all that it started has ended")
    assert time.monotonic() - began < 4


@pytest.mark.promise("kill_tree")
@pytest.mark.parametrize("way", [*WAYS, "chain"])
def test_kill_ends_the_whole_tree(sandbox: Sandbox, way: str) -> None:
    sandbox.files.write("/tmp/undying", compile_attack("undying"), mode=0o755)
    run = sandbox.commands.run(["/tmp/undying", way], background=True)
    wait_until(lambda: not is_at_rest(sandbox), "it runs")
    assert run.kill()
    wait_until(lambda: is_at_rest(sandbox), "all that it started has ended")


def test_the_end_of_a_box_is_the_end_of_all_in_it(make: Callable[..., Sandbox]) -> None:

    box = make()
    box.files.write("/tmp/undying", compile_attack("undying"), mode=0o755)
    for way in (*WAYS, "chain", "holding"):
        box.commands.run(["/tmp/undying", way], background=True)
    began = time.monotonic()
    box.kill()
    assert time.monotonic() - began < 5
    assert not runs_of(box).parent.exists()


@pytest.mark.parametrize("user", ["user", "root"])
def test_a_user_who_kills_everybody_ends_only_themselves(make: Callable[..., Sandbox], user: str) -> None:
    box = make(user=user)
    box.commands.run(["sleep", "60"], background=True)
    for name in ("KILL", "STOP", "TERM"):
        box.commands.run(f"kill -{name} -1", timeout=1)
    assert box.commands.run(["echo", "alive"]).check().stdout == "alive\n"


def test_a_box_whose_processes_are_all_killed_says_so(make: Callable[..., Sandbox]) -> None:
    from cloche.errors import SandboxError

    box = make()
    os.kill(keeper_of(box), signal.SIGKILL)
    wait_until(lambda: not box.is_running(), "it has ended")
    with pytest.raises(SandboxError, match="ended"):
        box.commands.run(["true"])
    assert box.kill()
