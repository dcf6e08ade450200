"""A box that nobody uses ends by itself, and so does one that is too old."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.keeper.conftest import start
from tests.keeper.wire import USAGE, USAGE_IS, request, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.keeper.conftest import Keeper


def has_ended(keeper: Keeper) -> bool:
    return keeper.process.poll() is not None


def reasons(keeper: Keeper) -> list[str]:
    """What it left in the folder that it was given, which is the cgroup of its runs."""
    wait_until(lambda: has_ended(keeper), "it has ended")
    return sorted(folder.name for folder in keeper.runs.glob("end-*"))


@pytest.mark.parametrize(("option", "reason"), [("--idle-ms", "end-idle"), ("--life-ms", "end-life")])
def test_it_ends_when_its_time_has_come_and_says_why(binary: Path, option: str, reason: str) -> None:
    with start(binary, option, "300", namespace=True, cgroup=True) as keeper:
        assert reasons(keeper) == [reason]


def test_a_foreground_command_holds_the_idle_limit_and_what_runs_behind_does_not(binary: Path) -> None:
    with start(binary, "--idle-ms", "300", namespace=True, cgroup=True) as keeper:
        client = keeper.client(1000, 1000)
        began = time.monotonic()
        client.shell("sleep 60 >/dev/null 2>&1 & sleep 0.8")
        assert not has_ended(keeper)
        assert reasons(keeper) == ["end-idle"]
        assert time.monotonic() - began > 0.8 + 0.3


def test_the_end_of_life_comes_while_it_is_at_work(binary: Path) -> None:
    with start(binary, "--life-ms", "300", namespace=True, cgroup=True) as keeper:
        client = keeper.client(1000, 1000)
        with client.start("sleep", "60"):
            assert reasons(keeper) == ["end-life"]


def test_being_looked_at_is_no_use(binary: Path) -> None:
    with start(binary, "--idle-ms", "400", namespace=True, cgroup=True) as keeper:
        client = keeper.client()

        def look() -> bool:
            if has_ended(keeper):
                return True
            with suppress(OSError, EOFError), client.open(request(USAGE)) as connection:
                connection.expect(USAGE_IS)
            return False

        wait_until(look, "it ended although its usage was asked for all the time")
