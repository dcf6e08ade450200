from __future__ import annotations

import os
import subprocess

from cloche.store import makers


def test_this_process_is_alive_by_its_name() -> None:
    assert makers.is_alive(makers.this_process())
    assert makers.this_process().startswith(f"{os.getpid()}:")


def test_a_process_that_ended_is_not_even_before_it_was_waited_for() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        name = f"{process.pid}:{makers.start_time(process.pid)}"
        assert makers.is_alive(name)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not makers.is_alive(name)


def test_another_process_of_the_same_number_is_not_it() -> None:
    assert not makers.is_alive(f"{os.getpid()}:1")
    assert not makers.is_alive("0:")


def test_a_boot_has_one_name() -> None:
    assert makers.boot() == makers.boot() != ""
