"""`cloche shell`, on a real terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cloche.cli.terminal import BELL
from tests.screen import Screen

if TYPE_CHECKING:
    from cloche import Sandbox

CLOCHE = [sys.executable, "-m", "cloche"]


def test_a_shell_is_used_as_one_and_ends_with_its_exit_code(box: Sandbox) -> None:
    del box
    with Screen([*CLOCHE, "shell", "box", "--cwd", "/tmp", "--env", "A=b"]) as screen:
        screen.wait_for("$")
        screen.type("echo $A-$PWD-$((6 * 7))\n")
        screen.wait_for("b-/tmp-42")
        screen.type("exit 3\n")
        assert screen.wait() == 3
    assert screen.seen.startswith(f"{BELL} cloche: what runs in ")
