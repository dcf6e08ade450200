"""Ctrl-C and its like, once, again, and too early."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from cloche import Sandbox

# Who runs the tests in the background has them ignore it.
CLOCHE = ["env", "--default-signal=INT,QUIT", sys.executable, "-m", "cloche"]


@pytest.mark.parametrize("others", [[signal.SIGINT], [signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP]])
def test_what_is_being_cleaned_up_is_not_disturbed_by_another(home: Path, others: list[signal.Signals]) -> None:
    command = [*CLOCHE, "run", "-c", "print('begun', flush=True); import time; time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 20
        while process.poll() is None:
            assert time.monotonic() < deadline
            for number in others:
                process.send_signal(number)
            time.sleep(0.001)
        # Of those that come in one moment, any may be the first.
        assert process.returncode in {128 + number for number in (signal.SIGINT, *others)}
        assert process.stderr
        assert process.stderr.read() == b""
    assert list((home / "boxes").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_a_command_does_not_outlive_whoever_followed_it(box: Sandbox, number: signal.Signals) -> None:
    command = [*CLOCHE, "exec", "box", "--", "echo begun; sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert [found.argv for found in box.commands.list() if found.argv[0] == "sleep"] == []


def test_one_that_comes_before_anything_else_ends_it_without_a_word(home: Path) -> None:
    del home
    for microseconds in range(0, 60_000, 4_000):
        # Not before the interpreter itself is there: what it says then is its own.
        code = (
            "import os, signal, sys, threading, time\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "def interrupt():\n"
            "    while 'cloche.__main__' not in sys.modules: time.sleep(0)\n"
            f"    time.sleep({microseconds} / 1e6); os.kill(os.getpid(), signal.SIGINT)\n"
            "threading.Thread(target=interrupt, daemon=True).start()\n"
            "from cloche.__main__ import program\n"
            "sys.argv = ['cloche', 'ls']; program()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        assert done.stderr == b""
        assert done.returncode in (130, -signal.SIGINT, 0)


def test_one_that_is_ignored_stays_ignored(home: Path) -> None:
    del home
    command = ["env", "--ignore-signal=INT", *CLOCHE[2:], "run", "-c", "print('begun', flush=True); print(input())"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(b"on\n", timeout=20)[0] == b"on\n"


def test_in_a_console_it_can_be_pressed_again_and_again() -> None:
    code = (
        "from cloche.cli.signals import handle_ends, repeated_interrupts\n"
        "handle_ends()\n"
        "with repeated_interrupts():\n"
        "    for number in range(3):\n"
        "        try: print('at', number, flush=True); input()\n"
        "        except KeyboardInterrupt: print('interrupted', number, flush=True)\n"
        "try: print('behind', flush=True); input()\n"
        "except KeyboardInterrupt: print('ended', flush=True)\n"
        "print('ready', flush=True); input()\n"
    )
    with Screen(["env", "--default-signal=INT", sys.executable, "-c", code]) as screen:
        for number in range(3):
            screen.wait_for(f"at {number}")
            screen.type("\x03")
        screen.wait_for("behind")
        screen.type("\x03")
        screen.wait_for("ready")
        screen.type("\x03\x03\n")
        assert screen.wait() == 0
    assert "interrupted 2" in screen.seen


def test_an_end_within_a_console_is_the_last_one() -> None:
    code = (
        "import os, signal\n"
        "from cloche.cli.signals import handle_ends, repeated_interrupts\n"
        "handle_ends()\n"
        "try:\n"
        "    with repeated_interrupts(): os.kill(os.getpid(), signal.SIGTERM)\n"
        "finally: os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run(["env", "--default-signal=INT", sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (143, b"")
