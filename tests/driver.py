"""A driver of a context, started as the keeper starts it: requests on 0, what code prints on 1 and 2, replies on 3."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = 30.0


@dataclass
class Reply:
    """All that came of one request."""

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    stdout: str = ""
    stderr: str = ""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of that type."""
        return [message for message in self.messages if message["type"] == kind]

    @property
    def text(self) -> str | None:
        """The last expression's value, as text."""
        return next((message["data"]["text/plain"] for message in self.of("result") if message["main"]), None)

    @property
    def error(self) -> dict[str, Any] | None:
        """What was raised."""
        return next(iter(self.of("error")), None)


class Driver:
    """Entered to start it; its process is ended at the exit."""

    def __init__(self, argv: Sequence[str], first: bytes, *, env: Mapping[str, str], cwd: str) -> None:
        self._argv, self._first, self._env, self._cwd = argv, first, env, cwd
        self._id = 0
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        pipes = [os.pipe() for _ in range(4)]
        inner = [pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1]]
        # Above those that they are to become, so that none is overwritten before its turn.
        moved = [os.dup(fd) for fd in inner] if min(inner) < 4 else inner
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(moved)]
        argv = ["/usr/bin/env", "-C", self._cwd, *self._argv]
        self.pid = os.posix_spawn(argv[0], argv, dict(self._env), file_actions=actions, setsid=True)
        for fd in {*inner, *moved}:
            os.close(fd)
        self._requests = pipes[0][1]
        self._outputs = {pipes[number][0]: b"" for number in (1, 2, 3)}
        self._numbers = {pipes[number][0]: number for number in (1, 2, 3)}
        self._send(self._first)
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for fd in (self._requests, *self._outputs):
            os.close(fd)

    def request(self, data: bytes, *, until: str = "done") -> Reply:
        """Sends octets as they are, and collects what comes until a message of that type."""
        self._send(data)
        return self.collect(until)

    def run(self, code: str, *, until: str = "done", **fields: Any) -> Reply:
        """A request as a line of JSON."""
        self._id += 1
        line = json.dumps({"id": self._id, "code": code, **fields})
        return self.request(line.encode() + b"\n", until=until)

    def collect(self, until: str) -> Reply:
        """What comes until a message of that type, or the end of the replies."""
        reply, deadline = Reply(), time.monotonic() + SECONDS
        while not reply.of(until):
            left = deadline - time.monotonic()
            assert left > 0, f"no {until!r} came: {reply}"
            ready = select.select(list(self._outputs), [], [], left)[0]
            # What code printed was written first.
            for fd in sorted(ready, key=lambda fd: self._numbers[fd]):
                data = os.read(fd, 1 << 20)
                number = self._numbers[fd]
                if number == 3:
                    if not data:
                        return reply
                    self._take(fd, data, reply)
                elif number == 1:
                    reply.stdout += data.decode("utf-8", "replace")
                else:
                    reply.stderr += data.decode("utf-8", "replace")
                if not data:
                    del self._outputs[fd]
                    os.close(fd)
        self._drain(reply)
        return reply

    def collect_output(self, seconds: float = 0.01) -> str:
        """What has been printed, to either stream; "" if nothing comes within that time."""
        reply = Reply()
        self._drain(reply, seconds)
        return reply.stdout + reply.stderr

    def end_requests(self) -> None:
        """Nothing can be sent after this."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._requests, inheritable=False)
        os.close(null)

    def interrupt(self) -> None:
        """As the keeper does: to the whole process group."""
        os.killpg(self.pid, signal.SIGINT)

    def _take(self, fd: int, data: bytes, reply: Reply) -> None:
        *lines, self._outputs[fd] = (self._outputs[fd] + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message["type"] == "ready":
                self.ready = message
            reply.messages.append(message)

    def _drain(self, reply: Reply, seconds: float = 0) -> None:
        """What was written before the last message."""
        for fd in select.select([fd for fd in self._outputs if self._numbers[fd] != 3], [], [], seconds)[0]:
            text = os.read(fd, 1 << 20).decode("utf-8", "replace")
            if self._numbers[fd] == 1:
                reply.stdout += text
            else:
                reply.stderr += text

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._requests, view) :]
