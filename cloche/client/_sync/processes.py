# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""A command in the background: follow it, feed it, signal it, wait for it."""

from __future__ import annotations

from contextlib import suppress
from signal import SIGKILL, Signals
from typing import TYPE_CHECKING, Final

from cloche.client.executions import PIECE
from cloche.client.output import Output, to_chunk
from cloche.client.refusals import refuse_process
from cloche.client.results import make_result
from cloche.errors import ClocheError, InvalidRequest, ProtocolError
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloche.client._sync.link import Link
    from cloche.engines.base import Events
    from cloche.models import CommandResult, Limits, OutputChunk

REPLY_SECONDS: Final = 30.0


class Command:
    """A command that runs in the background. It goes on when this program ends."""

    def __init__(self, link: Link, pid: int, *, limits: Limits, before: Events) -> None:
        self._link = link
        self._limits = limits
        self._before = before
        self.pid = pid
        """Its number inside the sandbox."""

    def wait(
        self,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Its result, when it has ended; the callbacks get all the output that is kept and all that comes.

        Of each output the result holds the beginning and the end, `output_bytes` together.

        Raises: TimeoutError where `timeout` seconds pass without output or end; the command goes on.
        """
        output = Output(0, on_stdout, on_stderr, kept=self._limits.output_bytes)
        request = frames.Attach(flags=frames.ATTACH_FOLLOW, pid=self.pid, offset=0)
        with self._link.start(request, refuse_process(self.pid)) as operation:
            operation.expect(frames.Started, REPLY_SECONDS)
            while True:
                frame = operation.receive_within(timeout)
                try:
                    if not isinstance(frame, frames.Exit):
                        output.add(frame)
                        continue
                    return make_result(
                        frame,
                        pid=self.pid,
                        streams=output.finish(),
                        limits=self._limits,
                        before=self._before,
                        after=self._link.events(),
                    )
                except ProtocolError as error:
                    raise operation.broken(error.message) from error

    def output(self, offset: int = 0, *, follow: bool = False) -> Iterator[OutputChunk]:
        """The output that is kept from `offset` on; with `follow` also what comes, until the end."""
        flags = frames.ATTACH_FOLLOW if follow else 0
        request = frames.Attach(flags=flags, pid=self.pid, offset=offset)
        with self._link.start(request, refuse_process(self.pid)) as operation:
            position = (operation.expect(frames.Started, REPLY_SECONDS)).offset
            while True:
                frame = operation.receive(None if follow else REPLY_SECONDS)
                if isinstance(frame, frames.Exit | frames.End):
                    return
                chunk = to_chunk(frame, position)
                if chunk is None:
                    raise operation.broken(f"{frame.NAME} was not expected between output")
                position += chunk.size
                yield chunk

    def __iter__(self) -> Iterator[OutputChunk]:
        return self.output(follow=True)

    def send_stdin(self, data: str | bytes) -> None:
        """Write to its standard input; returns when all of it has been taken."""
        send_input(self._link, self.pid, data)

    def close_stdin(self) -> None:
        """End its standard input."""
        request = frames.Input(pid=self.pid, kind=frames.INPUT_END, rows=0, cols=0, data=b"")
        self._link.ask(request, frames.Ok, refuse_process(self.pid))

    def signal(self, signal: int | str) -> None:
        """Send a signal, by number or name (`SIGINT`), to its process group."""
        request = frames.Signal(pid=self.pid, signal=number_of(signal), scope=frames.SCOPE_TREE)
        self._link.ask(request, frames.Ok, refuse_process(self.pid))

    def kill(self) -> bool:
        """End it with all that it started; False where it has ended already."""
        return kill_tree(self._link, self.pid)


def kill_tree(link: Link, pid: int, timeout: float = REPLY_SECONDS) -> bool:
    """End a run with all that it started; False where there is nothing to end any more."""
    request = frames.Signal(pid=pid, signal=SIGKILL, scope=frames.SCOPE_TREE)
    with suppress(ClocheError):
        link.ask(request, frames.Ok, refuse_process(pid), timeout)
        return True
    return False


def send_input(link: Link, pid: int, data: str | bytes) -> None:
    """Write to a run's standard input."""
    octets = data.encode() if isinstance(data, str) else data
    for start in range(0, len(octets), PIECE):
        piece = octets[start : start + PIECE]
        request = frames.Input(pid=pid, kind=frames.INPUT_DATA, rows=0, cols=0, data=piece)
        with link.start(request, refuse_process(pid)) as operation:
            # It takes as long as the process leaves its input unread.
            operation.expect(frames.Ok, None)


def number_of(signal: int | str) -> int:
    """Of a signal.

    Raises: InvalidRequest.
    """
    try:
        return Signals[signal].value if isinstance(signal, str) else Signals(signal).value
    except (KeyError, ValueError):
        raise InvalidRequest(
            f"signal is {signal!r}; a number of 1 to 64 or a name like 'SIGINT' was expected"
        ) from None
