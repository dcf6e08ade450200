"""Running commands in a sandbox."""

from __future__ import annotations

from signal import SIGKILL
from typing import TYPE_CHECKING, Literal, overload

from cloche.client._async.processes import AsyncCommand, number_of, send_input
from cloche.client._async.runs import START_SECONDS, AsyncRun
from cloche.client.executions import Preparation, input_flags, input_frames
from cloche.client.output import Output
from cloche.client.paths import to_text
from cloche.client.refusals import refuse_process, refuse_run
from cloche.errors import InvalidRequest, ProcessNotFound
from cloche.link import frames
from cloche.models import ProcessInfo

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping, Sequence

    from cloche.client._async.link import AsyncLink
    from cloche.client.executions import Execution
    from cloche.models import CommandResult


class AsyncCommands:
    """The commands of one sandbox: `sandbox.commands`."""

    def __init__(self, link: AsyncLink, preparation: Preparation) -> None:
        self._link = link
        self._preparation = preparation

    @overload
    async def run(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[False] = False,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: Literal["user", "root"] | None = None,
        timeout: float | None = None,
        stdin: str | bytes | None = None,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        output_bytes: int | None = None,
        tag: str = "",
    ) -> CommandResult: ...

    @overload
    async def run(
        self,
        command: str | Sequence[str],
        *,
        background: Literal[True],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: Literal["user", "root"] | None = None,
        timeout: float | None = None,
        stdin: str | bytes | bool | None = None,
        output_bytes: int | None = None,
        tag: str = "",
    ) -> AsyncCommand: ...

    async def run(
        self,
        command: str | Sequence[str],
        *,
        background: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: Literal["user", "root"] | None = None,
        timeout: float | None = None,
        stdin: str | bytes | bool | None = None,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        output_bytes: int | None = None,
        tag: str = "",
    ) -> CommandResult | AsyncCommand:
        """Run a command: a list is program and arguments, a string goes to the shell unless it is plain words.

        In the background (`background=True`) it outlives this program, has no time limit unless one is given here,
        and with `stdin=True` gets an input that can be written to later.

        Raises: InvalidRequest, SandboxError. That a command fails is a result, not an error: see `check()`.
        """
        if background and (on_stdout or on_stderr):
            raise InvalidRequest("a background command has no callbacks; give them to its wait()")
        if not background and isinstance(stdin, bool):
            raise InvalidRequest(f"stdin is {stdin!r}; only a background command can be fed later: give str or bytes")
        execution = self._preparation.execution(
            command,
            flags=input_flags(stdin) | (frames.RUN_BACKGROUND if background else 0),
            env=env,
            cwd=cwd,
            user=user,
            timeout=0 if background and timeout is None else timeout,
            output_bytes=output_bytes,
            tag=tag,
        )
        if background:
            return await self._start(execution, stdin)
        async with AsyncRun(self._link, execution) as run:
            if isinstance(stdin, str | bytes):
                run.feed(input_frames(stdin))
            return await run.collect(Output(execution.limits.output_bytes, on_stdout, on_stderr))

    def start(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: Literal["user", "root"] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
        output_bytes: int | None = None,
        tag: str = "",
    ) -> AsyncRun:
        """Start a command as `run` does, to be entered with `async with` and followed piece by piece.

        Raises: InvalidRequest, and when it is entered SandboxError.
        """
        execution = self._preparation.execution(
            command,
            flags=input_flags(stdin),
            env=env,
            cwd=cwd,
            user=user,
            timeout=timeout,
            output_bytes=output_bytes,
            tag=tag,
        )
        return AsyncRun(self._link, execution)

    async def _start(self, execution: Execution, stdin: str | bytes | bool | None) -> AsyncCommand:
        before = self._link.events()
        async with self._link.start(execution.request, refuse_run(execution.cwd)) as operation:
            started = await operation.expect(frames.Started, START_SECONDS)
            command = AsyncCommand(self._link, started.pid, limits=execution.limits, before=before)
        if isinstance(stdin, str | bytes):
            await command.send_stdin(stdin)
            await command.close_stdin()
        return command

    async def list(self) -> builtins.list[ProcessInfo]:
        """Every process of the sandbox; first those that were started from here, ended ones among them."""
        found = await self._link.collect(frames.Processes(), frames.Process)
        return [_to_info(process) for process in found]

    async def connect(self, pid: int) -> AsyncCommand:
        """A command that was started in the background, perhaps by another program.

        Raises: ProcessNotFound.
        """
        request = frames.Attach(flags=0, pid=pid, offset=(1 << 64) - 1)
        await self._link.ask(request, frames.Started, refuse_process(pid))
        return AsyncCommand(self._link, pid, limits=self._link.record.spec.limits, before=self._link.events())

    async def kill(self, pid: int, signal: int | str = SIGKILL) -> bool:
        """End a command with all that it started, or any other process; False where there is none.

        Another signal, by number or name, goes to the command's process group.
        """
        for scope in (frames.SCOPE_TREE, frames.SCOPE_PROCESS):
            request = frames.Signal(pid=pid, signal=number_of(signal), scope=scope)
            try:
                await self._link.ask(request, frames.Ok, refuse_process(pid))
            except ProcessNotFound:
                continue
            return True
        return False

    async def send_stdin(self, pid: int, data: str | bytes) -> None:
        """Write to a background command's standard input; returns when all of it has been taken.

        Raises: ProcessNotFound, InvalidRequest.
        """
        await send_input(self._link, pid, data)


def _to_info(process: frames.Process) -> ProcessInfo:
    ended = bool(process.flags & frames.PROCESS_ENDED)
    return ProcessInfo(
        pid=process.pid,
        parent=process.parent,
        uid=process.uid,
        argv=tuple(to_text(word) for word in process.argv),
        state=chr(process.state),
        is_execution=bool(process.flags & frames.PROCESS_RUN),
        background=bool(process.flags & frames.PROCESS_BACKGROUND),
        started=process.started_ns / 1e9,
        cpu_seconds=process.cpu_us / 1e6,
        memory_bytes=process.memory_bytes,
        tag=to_text(process.tag),
        exit_code=(128 + process.signal if process.signal else process.exit_code) if ended else None,
    )
