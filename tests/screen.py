"""A program on a terminal, as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 30.0


class Screen:
    """Runs a command with a terminal of its own as input, output and error."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self.seen = ""

    def __enter__(self) -> Self:
        self._master, terminal = pty.openpty()
        self.resize(24, 80)
        self.process = subprocess.Popen(
            self._command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, keys: str) -> None:
        """As if it was typed."""
        os.write(self._master, keys.encode())

    def resize(self, rows: int, cols: int) -> None:
        """As if somebody had pulled at the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def wait_for(self, text: str) -> str:
        """All that was seen so far, once the text is in what came since the last call."""
        deadline = time.monotonic() + SECONDS
        found = ""
        while text not in found:
            assert time.monotonic() < deadline, f"{text!r} did not come: {found!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                found += self._read()
        self.seen += found
        return found

    def wait(self) -> int:
        """Its exit status; what it still writes is seen."""
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end: {self.seen!r}"
            if select.select([self._master], [], [], 0.05)[0]:
                self.seen += self._read()
        while select.select([self._master], [], [], 0)[0] and (text := self._read()):
            self.seen += text
        return self.process.returncode

    def _read(self) -> str:
        try:
            return os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:
            return ""
