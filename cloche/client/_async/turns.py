"""One turn in a context: a piece of code goes in, and what it prints, shows and raises comes out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from signal import SIGINT, SIGKILL
from time import monotonic
from typing import TYPE_CHECKING, Final

from cloche.client._async.processes import kill_tree
from cloche.client.executions import PIECE
from cloche.client.output import Output, to_chunk
from cloche.client.refusals import refuse_process
from cloche.client.replies import Replies
from cloche.client.results import describe_limit
from cloche.client.tags import how_ended
from cloche.client.waiting import in_thread
from cloche.displays import CodeError, CodeResult
from cloche.errors import ProcessNotFound, ProtocolError, SandboxError
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche.client._async.link import AsyncLink, AsyncOperation
    from cloche.client.replies import Message
    from cloche.client.tags import Context
    from cloche.displays import Display
    from cloche.models import LimitName, Limits, OutputChunk

OBEY_SECONDS: Final = (0.3, 1.7)
"""What an interpreter gets to end code that was interrupted, each time: it may have been about to start a program."""
BEGIN_SECONDS: Final = 30.0
"""What an interpreter gets to be ready, and to take up a piece."""
END_SECONDS: Final = 10.0
"""What the keeper gets to end an interpreter."""
SEND_AT_ONCE: Final = 64 << 10
MOST_EARLY: Final = 4 << 20
"""Octets that are held until it is known whose they are."""
MOST_SAID: Final = 2000
"""Octets of what an interpreter complains of that does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who is told of what comes, as it comes."""

    on_stdout: Callable[[str], object] | None = None
    on_stderr: Callable[[str], object] | None = None
    on_result: Callable[[Display], object] | None = None

    @property
    def is_there(self) -> bool:
        """True where anybody is told, who may take their time."""
        return bool(self.on_stdout or self.on_stderr or self.on_result)


class AsyncTurn:
    """On a connection whose turn has come."""

    def __init__(
        self,
        link: AsyncLink,
        operation: AsyncOperation,
        pid: int,
        *,
        context: Context,
        limits: Limits,
        is_first: bool = False,
        note: str | None = None,
    ) -> None:
        self.is_first = is_first
        """Of its interpreter."""
        self.note = note
        """What is to be known of that."""
        self._link = link
        self._operation = operation
        self._pid = pid
        self._limits = limits
        self._replies = Replies()
        self._output = Output(0, kept=limits.output_bytes)
        self._before = link.events()
        self._deadline: float | None = None
        self._interrupts = 0
        self._killed = False
        self._began: float | None = None
        self._results: list[Display] = []
        self._id = 0
        self._early: list[OutputChunk] = []
        self._early_size = 0
        self._result = CodeResult(
            context=context.id,
            language=context.language,
            results=(),
            stdout="",
            stderr="",
            error=None,
            execution_count=0,
            wall_seconds=0.0,
        )

    async def run(self, id: int, request: bytes, listener: Listener) -> CodeResult:
        """The result; where the interpreter is gone by then, it says so."""
        self._id = id
        self._output = Output(0, listener.on_stdout, listener.on_stderr, kept=self._limits.output_bytes)
        self._began = monotonic()
        # Its own time runs from where it begins.
        self._deadline = self._began + BEGIN_SECONDS
        await self._send(request)
        while True:
            frame = await self._receive()
            took = monotonic()
            if isinstance(frame, frames.Exit):
                return await self._died(frame)
            if not isinstance(frame, frames.Data):
                await self._add(frame)
            elif await self._heard(frame, listener):
                await self._operation.send(frames.End())
                return self._finish()
            # What it takes to read a flood is the code's own time.
            if listener.is_there:
                self._wait_longer(monotonic() - took)

    async def wait_until_ready(self) -> None:
        """Of a new interpreter.

        Raises: SandboxError where it ends before.
        """
        self._deadline = monotonic() + BEGIN_SECONDS
        while True:
            frame = await self._receive()
            if isinstance(frame, frames.Exit):
                result = await self._died(frame)
                said = result.error.traceback.strip() if result.error else ""
                raise SandboxError(f"the context could not be started: {result.message}{said and f': {said}'}")
            if not isinstance(frame, frames.Data):
                await self._add(frame)
            elif any(message.kind == "ready" for message in await self._read(frame)):
                await self._operation.send(frames.End())
                return

    async def leave(self) -> None:
        """Hang up; in the middle that interrupts."""
        await self._operation.hang_up()

    async def _send(self, request: bytes) -> None:
        pieces = [frames.Stdin(request[start : start + PIECE]) for start in range(0, len(request), PIECE)]
        if len(request) > SEND_AT_ONCE:
            self._operation.feed(pieces)
            return
        for piece in pieces:
            await self._operation.send(piece)

    async def _receive(self) -> frames.Frame:
        """The next frame. Once the time is up the code is interrupted, and what does not obey is ended."""
        while True:
            left = None if self._deadline is None else self._deadline - monotonic()
            if left is None or left > 0:
                try:
                    return await self._operation.receive_within(left)
                except TimeoutError:
                    continue
            if self._killed:
                raise await self._operation.broken("the keeper did not end an interpreter that was killed")
            if self._interrupts == len(OBEY_SECONDS):
                await self._kill()
            else:
                self._deadline = monotonic() + OBEY_SECONDS[self._interrupts]
                self._interrupts += 1
                await interrupt(self._link, self._pid)

    async def _kill(self) -> None:
        """The interpreter first, by itself: so that it is not taken for one whose end was asked for."""
        self._killed = True
        self._deadline = monotonic() + END_SECONDS
        request = frames.Signal(pid=self._pid, signal=SIGKILL, scope=frames.SCOPE_PROCESS)
        with suppress(ProcessNotFound):
            await self._link.ask(request, frames.Ok, refuse_process(self._pid))

    def _wait_longer(self, seconds: float) -> None:
        """However slow whoever listens is, the code gets its time."""
        if self._deadline is not None:
            self._deadline += seconds

    async def _add(self, frame: frames.Frame) -> None:
        chunk = to_chunk(frame, 0)
        if chunk is None or chunk.stream == "gap":
            raise await self._operation.broken(f"{frame.NAME} was not expected in a turn")
        if self._result.execution_count:
            self._output.add(frame)
            return
        # Ours, where no other piece ends after it.
        if self._early_size < MOST_EARLY:
            self._early.append(chunk)
            self._early_size += chunk.size

    async def _heard(self, frame: frames.Data, listener: Listener) -> bool:
        """True where it was the last word."""
        is_done = False
        for message in await self._read(frame):
            if message.id == self._id and message.kind == "begun" and self._result.execution_count:
                # It would give itself more time.
                await self._break("a piece began twice")
                return False
            if message.id == self._id:
                is_done |= self._take(message, listener)
            elif message.kind == "done":
                # The end of what somebody began who did not wait for it.
                self._early, self._early_size = [], 0
        return is_done

    async def _read(self, frame: frames.Data) -> list[Message]:
        """What is complete; nothing of one that makes no sense."""
        if self._killed:
            return []
        try:
            if self._replies.is_large:
                return await in_thread(self._replies.feed, bytes(frame.data))
            return self._replies.feed(frame.data)
        except ProtocolError as error:
            await self._break(error.message)
            return []

    def _take(self, message: Message, listener: Listener) -> bool:
        match message.kind:
            case "begun":
                self._began = monotonic()
                self._deadline = self._began + self._limits.timeout if self._limits.timeout else None
                self._result = replace(self._result, execution_count=message.count)
                for chunk in self._early:
                    self._output.add(_FRAMES[chunk.stream](chunk.data))
                self._early = []
            case "result":
                assert message.display, "a result has one"
                self._results.append(message.display)
                if listener.on_result:
                    listener.on_result(message.display)
            case "error":
                self._result = replace(self._result, error=message.error)
            case _:
                self._result = replace(self._result, exit_code=message.exit_code)
                return message.kind == "done"
        return False

    async def _break(self, reason: str) -> None:
        """Nothing that it says can be believed any more."""
        error = CodeError(
            name="ContextBroken", value=f"the interpreter's answers make no sense: {reason}", traceback=""
        )
        self._result = replace(self._result, error=error)
        await self._kill()

    def _finish(
        self, *, state_lost: bool = False, limit: LimitName | None = None, why: str | None = None
    ) -> CodeResult:
        stdout, stderr = self._output.finish()
        hit: LimitName | None = limit
        if self._interrupts:
            hit = "timeout" if self._result.execution_count else self._lack()
        dropped = self._output.dropped
        if hit is None and dropped:
            hit = "output_bytes"
        message = describe_limit(hit, self._limits, dropped) if hit else why
        if self._interrupts and not hit:
            message = f"the interpreter did not begin within {BEGIN_SECONDS:g} s"
        if state_lost and hit:
            message = f"{message}. The context's variables are lost, and its next execution gets a new interpreter"
        return replace(
            self._result,
            results=tuple(self._results),
            stdout=stdout,
            stderr=stderr,
            wall_seconds=monotonic() - (self._began or monotonic()),
            limit_hit=hit,
            message=message,
            output_dropped=dropped,
            state_lost=state_lost,
        )

    def _lack(self) -> LimitName | None:
        """What the kernel says that the sandbox had too little of."""
        events = self._link.events()
        if events.oom_kills > self._before.oom_kills:
            return "memory_mb"
        return "pids" if events.pids_refused > self._before.pids_refused else None

    async def _died(self, ended: frames.Exit) -> CodeResult:
        how = how_ended(ended.exit_code, ended.signal)
        limit = None if self._killed else self._lack()
        # What it started ends with it.
        await kill_tree(self._link, self._pid)
        if self._result.error is None:
            said = b"".join(chunk.data for chunk in self._early)[-MOST_SAID:].decode("utf-8", "replace")
            error = CodeError(name="ContextDied", value=f"the interpreter {how}", traceback=said)
            self._result = replace(self._result, error=error)
        why = f"the interpreter {how}: the context's variables are lost, and its next execution gets a new one"
        return self._finish(state_lost=True, limit=limit, why=why)


_FRAMES: Final = {"stdout": frames.Stdout, "stderr": frames.Stderr}


async def interrupt(link: AsyncLink, pid: int) -> bool:
    """End what runs in a context; False where the context has ended."""
    request = frames.Signal(pid=pid, signal=SIGINT, scope=frames.SCOPE_TREE)
    try:
        await link.ask(request, frames.Ok, refuse_process(pid))
    except ProcessNotFound:
        return False
    return True
