"""Terminals (product line 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from cloche import Sandbox, Terminal


def read_until(terminal: Terminal, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        data = terminal.read(timeout=10)
        assert data, f"the terminal ended with {seen!r}"
        seen += data
    return seen


def test_a_shell_answers_what_is_typed(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create()
    terminal.send("echo $((40 + 2)); exit 5\n")
    read_until(terminal, b"42\r\n")
    assert terminal.wait(timeout=10) == 5


def test_it_is_a_terminal_of_the_size_asked_for(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(["sh", "-c", "tty && stty size"], rows=33, cols=99)
    seen = b"".join(terminal)
    assert b"/dev/pts/" in seen
    assert b"33 99" in seen


def test_resizing_is_told_to_the_program(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(["bash", "-c", "trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.02; done"])
    read_until(terminal, b"up")
    terminal.resize(50, 120)
    read_until(terminal, b"50 120")
    assert terminal.wait(timeout=10) == 0


def test_control_c_interrupts(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(["sh", "-c", "echo up; exec sleep 60"])
    read_until(terminal, b"up")
    terminal.send("\x03")
    assert terminal.wait(timeout=10) == 130


def test_data_goes_to_the_callback_while_waiting(sandbox: Sandbox) -> None:
    seen: list[bytes] = []
    terminal = sandbox.pty.create(["echo", "hello"], on_data=seen.append)
    assert terminal.wait(timeout=10) == 0
    assert b"".join(seen) == b"hello\r\n"


def test_it_can_be_killed(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(["sleep", "60"])
    assert terminal.kill()
    assert terminal.wait(timeout=10) == 137
    with pytest.raises(NotFound, match="has ended"):
        terminal.send("x")


@pytest.mark.parametrize("size", [(0, 80), (24, 0), (24, 5000), (-1, 80)])
def test_a_size_that_no_terminal_has_is_refused(sandbox: Sandbox, size: tuple[int, int]) -> None:
    with pytest.raises(InvalidRequest, match="rows and columns"):
        sandbox.pty.create(rows=size[0], cols=size[1])
