"""Our terminal, lent to a program in a sandbox."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from cloche.cli.outlet import PIECE, Outlet
from cloche.cli.terminal import say
from cloche.errors import ClocheError, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from cloche.client._sync.sandbox import Sandbox
    from cloche.client._sync.terminals import Terminal

_TYPE: Final = re.compile(r"[\w+.-]{1,32}", re.ASCII)
_MOST: Final = 1000


def attach(box: Sandbox, command: str | Sequence[str] | None, *, raw: bool, **options: Any) -> int:
    """Runs a program (the shell where none is named) on it; gives its exit code.

    Raises: InvalidRequest where we have no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest("a terminal was asked for, and standard input and output are none; -i gives a pipe")
    if not raw:
        say(f"what runs in {box.id} draws on this terminal until it ends; titles, links and the clipboard are left out")
    rows, cols = _our_size()
    options["env"] = {"TERM": _our_type(), **options["env"]}
    with _resizes() as resized:
        terminal = box.pty.create(command, rows=rows, cols=cols, **options)
        outlet = Outlet("stdout", raw=raw, screen=True)
        try:
            with _every_key():
                Thread(target=_pump, args=(terminal, resized), daemon=True).start()
                for data in terminal:
                    outlet.write(data)
                return terminal.wait()
        finally:
            terminal.kill()
            outlet.finish()


def _our_size() -> tuple[int, int]:
    size = os.get_terminal_size(sys.stdout.fileno())
    return min(max(size.lines, 1), _MOST), min(max(size.columns, 1), _MOST)


def _our_type() -> str:
    """What our terminal calls itself, where that is a word."""
    name = os.environ.get("TERM", "")
    return name if _TYPE.fullmatch(name) and name != "dumb" else "xterm-256color"


@contextmanager
def _every_key() -> Generator[None]:
    """Each key goes to the program at once, Ctrl-C as well."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _resizes() -> Generator[int]:
    """A descriptor that has something to read when our terminal has another size."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    handler = signal.signal(signal.SIGWINCH, _ignore)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGWINCH, handler)
        # The thread that reads it may still be there: it ends with the process.
        os.close(writing)


def _ignore(number: int, frame: object) -> None:
    """What has a handler, unlike what is ignored, is told to the descriptor."""


def _pump(terminal: Terminal, resized: int) -> None:
    """Keys and sizes, from one thread: a frame is sent whole before the next one."""
    with suppress(ClocheError, OSError):
        while True:
            ready, _, _ = select.select([0, resized], [], [])
            if resized in ready:
                if not os.read(resized, PIECE):
                    return
                terminal.resize(*_our_size())
            if 0 in ready:
                keys = os.read(0, PIECE)
                if not keys:
                    return
                terminal.send(keys)
