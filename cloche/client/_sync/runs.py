# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""A command that runs in the foreground, followed piece by piece."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, Self

from cloche.client._sync.processes import kill_tree
from cloche.client.executions import PIECE
from cloche.client.output import Output, to_chunk
from cloche.client.refusals import refuse_run
from cloche.client.results import make_result
from cloche.errors import ClocheError, NotFound, ProtocolError, SandboxError
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from cloche.client._sync.link import Link
    from cloche.client.executions import Execution
    from cloche.models import CommandResult, OutputChunk

START_SECONDS: Final = 30.0
ABANDON_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 10.0
"""What the keeper gets to end an execution and tell so once its time is up."""


class Run:
    """A command that runs as long as somebody follows it; entered with `with`, left at its end or to end it.

    Iterate to get its output as it comes, with back-pressure: it waits for whoever is slow.
    """

    def __init__(self, link: Link, execution: Execution) -> None:
        self._link = link
        self._execution = execution
        # First: a program may run into a limit before this could be read behind its start.
        self._before = link.events()
        self._operation = link.start(execution.request, refuse_run(execution.cwd))
        self._deadline: float | None = None
        self.pid = 0
        """Its number inside the sandbox."""
        self.result: CommandResult | None = None
        """How it ended, once it has; the output is not kept in it."""

    def __enter__(self) -> Self:
        self._operation.__enter__()
        try:
            self.pid = (self._operation.expect(frames.Started, START_SECONDS)).pid
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        seconds = self._execution.limits.timeout
        self._deadline = monotonic() + seconds + GRACE_SECONDS if seconds else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.result is None and not isinstance(error, ProtocolError):
                self._abandon()
        finally:
            self._operation.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[OutputChunk]:
        """Its output in order; afterwards there is the `result`."""
        position = 0
        # It counts, so that a keeper can't send more than the limit; the text is nobody's.
        output = Output(self._execution.limits.output_bytes, kept=1)
        while True:
            frame = self._receive()
            if isinstance(frame, frames.Exit):
                self._end(frame, ("", ""))
                return
            self._add(output, frame)
            chunk = to_chunk(frame, position)
            assert chunk is not None, "the output takes nothing else"
            position += chunk.size
            began = monotonic()
            yield chunk
            self._wait_longer(monotonic() - began)

    def collect(self, output: Output) -> CommandResult:
        """All of it, at its end."""
        while True:
            frame = self._receive()
            if isinstance(frame, frames.Exit):
                return self._end(frame, output.finish())
            began = monotonic()
            self._add(output, frame)
            self._wait_longer(monotonic() - began)

    def feed(self, pieces: Iterable[frames.Frame]) -> None:
        """Send these while its output is received."""
        self._operation.feed(pieces)

    def send_stdin(self, data: str | bytes) -> None:
        """Write to its standard input, from any thread or task.

        Raises: NotFound where it has ended.
        """
        view = memoryview(data.encode() if isinstance(data, str) else data)
        for start in range(0, len(view), PIECE):
            self._send(frames.Stdin(view[start : start + PIECE]))

    def close_stdin(self) -> None:
        """End its standard input."""
        self._send(frames.StdinEnd())

    def kill(self) -> bool:
        """End it with all that it started; False where it has ended already."""
        return kill_tree(self._link, self.pid)

    def _send(self, frame: frames.Frame) -> None:
        if self.result or not self._operation.send(frame):
            raise NotFound(f"the command {self.pid} has ended")

    def _receive(self) -> frames.Frame:
        late = "the keeper did not end an execution whose time is up"
        wait = None if self._deadline is None else self._deadline - monotonic()
        # A keeper that goes on to send is late as well.
        if wait is not None and wait <= 0:
            raise self._operation.broken(late)
        try:
            return self._operation.receive(wait)
        except SandboxError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise self._operation.broken(late) from error
            raise

    def _add(self, output: Output, frame: frames.Frame) -> None:
        try:
            output.add(frame)
        except ProtocolError as error:
            raise self._operation.broken(error.message) from error

    def _wait_longer(self, seconds: float) -> None:
        """However slow whoever reads is, the keeper gets its time to answer."""
        if self._deadline is not None:
            self._deadline += seconds

    def _end(self, ended: frames.Exit, streams: tuple[str, str]) -> CommandResult:
        try:
            self.result = make_result(
                ended,
                pid=self.pid,
                streams=streams,
                limits=self._execution.limits,
                before=self._before,
                after=self._link.events() if ended.exit_code else self._before,
            )
        except ProtocolError as error:
            raise self._operation.broken(error.message) from error
        return self.result

    def _abandon(self) -> None:
        """Nobody waits for it any more: it must not go on unseen."""
        with suppress(ClocheError):
            if not self.pid:
                self.pid = (self._operation.expect(frames.Started, ABANDON_SECONDS)).pid
            kill_tree(self._link, self.pid, ABANDON_SECONDS)
