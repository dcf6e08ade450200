"""Running the launcher: the small C program that takes a box's privileged steps, then becomes the OCI runtime."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

from cloche.engines.machine import SYSTEM_PATH
from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 60.0
SAID_AT_MOST = 1 << 16


def run_launcher(command: Sequence[str], timeout: float = LONGEST) -> None:
    """Run it to its end.

    Raises: EngineError with what it said.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        try:
            code = _wait(_spawn(command, writer), timeout)
        finally:
            os.close(writer)
        # The box may hold the pipe open: read what is there, never to its end.
        os.set_blocking(reader, False)
        said = _read(reader)
    finally:
        os.close(reader)
    if code:
        raise EngineError(f"the box could not be made: {said or f'exit code {code}'}")


def _spawn(command: Sequence[str], output: int) -> int:
    # Nothing of this machine's, as /dev/null is: crun gives what it finds there to the box's root.
    empty, end = os.pipe2(os.O_CLOEXEC)
    os.close(end)
    try:
        return _start(command, (empty, output, output))
    finally:
        os.close(empty)


def _start(command: Sequence[str], standard: Sequence[int]) -> int:
    # Half the time of subprocess.Popen; no other descriptor of ours is inheritable.
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(standard)]
    # Python ignores these two, and what is ignored is inherited.
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)
    return os.posix_spawn(
        command[0], list(command), {"PATH": SYSTEM_PATH}, file_actions=actions, setsid=True, setsigdef=defaults
    )


def _wait(pid: int, timeout: float) -> int:
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(timeout * 1000):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise EngineError(f"the launcher did not end within {timeout:g} s")
    finally:
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _read(reader: int) -> str:
    try:
        return os.read(reader, SAID_AT_MOST).decode(errors="replace").strip()
    except BlockingIOError:
        return ""
