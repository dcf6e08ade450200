"""The keeper as a plain process of the server's user: time and output limits, and no isolation at all."""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cloche import settings
from cloche.engines.abilities import refuse_what_is_not_enforced
from cloche.engines.base import Box, EngineUsage, Fact
from cloche.engines.counters import NoCounters
from cloche.errors import EngineError
from cloche.link.connection import address_of

if TYPE_CHECKING:
    from cloche.images.base import Image
    from cloche.models import SandboxSpec

LISTEN_FD = 3
END_SECONDS = 5.0
"""What the keeper gets to end its executions before it is killed itself."""


class HostEngine:
    """Makes boxes that are only a folder and a keeper."""

    name = "host"

    def check(self) -> list[Fact]:
        """Try what a box needs on this machine."""
        try:
            return [Fact("keeper", True, str(settings.keeper_path()))]
        except EngineError as error:
            return [Fact("keeper", False, error.message, "make build")]

    def refuse(self, spec: SandboxSpec) -> None:
        """Raises Unsupported for what this engine cannot enforce."""
        refuse_what_is_not_enforced(self.name, spec)

    def create(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> Box:
        """Start a keeper that listens in `folder`.

        Raises: EngineError.
        """
        del spec, image  # both say what is in a box; here everything of the machine is
        path = folder / "keeper.sock"
        (folder / "home").mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                with address_of(str(path)) as address:
                    listener.bind(address)
                listener.listen(256)
                pid = _spawn_keeper(listener.fileno())
            except OSError as error:
                raise EngineError(f"the keeper can't be started: {error}") from error
        state: dict[str, str | int] = {"pid": pid, "started": _start_time(pid) or ""}
        return Box(id=id, engine=self.name, folder=folder, socket=path, state=state)

    def delete(self, box: Box) -> None:
        """End the keeper, and with it all that it started."""
        pid = int(box.state["pid"])
        if self.is_alive(box):
            with suppress(ProcessLookupError):
                _end(pid)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    def is_alive(self, box: Box) -> bool:
        """True while its keeper runs."""
        return _start_time(int(box.state["pid"])) == box.state["started"]

    def counters(self, box: Box) -> NoCounters:
        """None: there is no cgroup that counts."""
        del box
        return NoCounters()

    def usage(self, box: Box) -> EngineUsage:
        """Unknown: there is no cgroup that counts."""
        del box
        return EngineUsage(None, None)


def _spawn_keeper(listener: int) -> int:
    keeper = str(settings.keeper_path())
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    return os.posix_spawn(
        keeper,
        [keeper, "--host", "--listen-fd", str(LISTEN_FD)],
        {"PATH": os.environ.get("PATH", os.defpath)},
        file_actions=[*null, (os.POSIX_SPAWN_DUP2, listener, LISTEN_FD)],
        setsid=True,
    )


def _end(pid: int) -> None:
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not _wait(process, END_SECONDS):
            signal.pidfd_send_signal(process, signal.SIGKILL)
            _wait(process, END_SECONDS)
    finally:
        os.close(process)


def _wait(process: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _start_time(pid: int) -> str | None:
    """When it started, in clock ticks since boot: with the number it names a process for good; None if it ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
