"""A terminal that is lent to a program in a sandbox."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.screen import Screen

if TYPE_CHECKING:
    from cloche import Sandbox

CLOCHE = [sys.executable, "-m", "cloche"]


def test_keys_go_to_the_program_and_the_window_s_size_as_well(box: Sandbox) -> None:
    with Screen([*CLOCHE, "exec", box.id, "-t", "--", "sh"]) as screen:
        screen.wait_for("$")
        # The first shell may not have let go of the signals of what it starts; the second one has.
        screen.type("stty size; sh -c 'echo be''gun; exec sleep 60'\n")
        assert "24 80" in screen.wait_for("begun")
        screen.resize(30, 100)
        screen.type("\x03")
        screen.wait_for("$")
        screen.type("stty size; exit\n")
        screen.wait_for("30 100")
        assert screen.wait() == 0


def test_what_leaves_the_terminal_is_filtered_and_it_is_left_as_it_was(box: Sandbox) -> None:
    command = r"printf '\033[?1049h\033]52;c;QQ==\007\033[6n\033[31mred'"
    with Screen([*CLOCHE, "exec", box.id, "-t", "--", command]) as screen:
        assert screen.wait() == 0
    assert "\x1b[?1049h\x1b[31mred" in screen.seen
    assert screen.seen.endswith("\x1b[?1049l")
    with Screen([*CLOCHE, "exec", box.id, "-t", "--raw", "--", command]) as screen:
        assert screen.wait() == 0
    assert "\x1b]52;c;QQ==\x07\x1b[6n" in screen.seen


def test_a_box_that_ends_gives_the_terminal_back(box: Sandbox) -> None:
    with Screen(["sh", "-c", f"{' '.join(CLOCHE)} shell {box.id}; stty -a"]) as screen:
        screen.wait_for("$")
        box.kill()
        screen.wait_for("has ended")
        screen.wait()
    assert " icanon " in screen.seen
    assert " echo " in screen.seen
