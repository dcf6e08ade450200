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
from cloche.engines.abilities import ABILITIES, refuse_what_is_not_enforced
from cloche.engines.base import Box, EngineUsage, Fact, life_options, read_mark
from cloche.engines.counters import NoCounters
from cloche.errors import EngineError
from cloche.link.connection import address_of
from cloche.store.makers import start_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloche.engines.abilities import Ability
    from cloche.images.base import Image
    from cloche.models import SandboxSpec

LISTEN_FD, END_FD = 3, 4
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

    def abilities(self) -> Mapping[str, Ability]:
        """The row of the table."""
        return ABILITIES[self.name]

    def refuse(self, spec: SandboxSpec) -> None:
        """Raises Unsupported for what this engine cannot enforce."""
        refuse_what_is_not_enforced(self.name, self.abilities(), spec)

    def create(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> Box:
        """Start a keeper that listens in `folder`.

        Raises: EngineError.
        """
        del image  # it says what is in a box; here everything of the machine is
        path = folder / "keeper.sock"
        (folder / "home").mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                with address_of(str(path)) as address:
                    listener.bind(address)
                listener.listen(256)
                pid = _spawn_keeper(id, listener.fileno(), folder, spec)
            except OSError as error:
                raise EngineError(f"the keeper can't be started: {error}") from error
        state: dict[str, str | int] = {"pid": pid, "started": start_time(pid) or ""}
        return Box(id=id, engine=self.name, folder=folder, socket=path, state=state)

    def delete(self, box: Box) -> None:
        """End the keeper, and with it all that it started."""
        pid = int(box.state["pid"]) if box.state else _find_keeper(box.id)
        if pid is None:
            return
        if not box.state or self.is_alive(box):
            with suppress(ProcessLookupError):
                _end(pid)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    def is_alive(self, box: Box) -> bool:
        """True while its keeper runs."""
        return start_time(int(box.state["pid"])) == box.state["started"]

    def first_process(self, box: Box) -> int | None:
        """The keeper's number."""
        return int(box.state["pid"]) if self.is_alive(box) else None

    def why_ended(self, box: Box) -> str:
        """By the mark that the keeper leaves in the box's folder."""
        return read_mark(box.folder) or "killed"

    def counters(self, box: Box) -> NoCounters:
        """None: there is no cgroup that counts."""
        del box
        return NoCounters()

    def usage(self, box: Box) -> EngineUsage:
        """Unknown: there is no cgroup that counts."""
        del box
        return EngineUsage(None, None)


def _spawn_keeper(id: str, listener: int, folder: Path, spec: SandboxSpec) -> int:
    files = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    files += [(os.POSIX_SPAWN_DUP2, listener, LISTEN_FD)]
    files += [(os.POSIX_SPAWN_OPEN, END_FD, str(folder), os.O_RDONLY | os.O_DIRECTORY, 0)]
    options = ["--host", "--listen-fd", str(LISTEN_FD), "--end-fd", str(END_FD), *life_options(spec)]
    return os.posix_spawn(
        settings.keeper_path(),
        [_title(id), *options],
        {"PATH": os.environ.get("PATH", os.defpath)},
        file_actions=files,
        setsid=True,
    )


def _title(id: str) -> str:
    return f"cloche-keeper-{id}"


def _find_keeper(id: str) -> int | None:
    """One that was started, and whose number nobody could write down any more."""
    wanted = _title(id).encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            is_ours = os.stat(f"/proc/{name}").st_uid == os.geteuid()
            if is_ours and Path("/proc", name, "cmdline").read_bytes().partition(b"\0")[0] == wanted:
                return int(name)
    return None


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
