# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""Running commands in a sandbox."""

from __future__ import annotations

from contextlib import suppress
from signal import SIGKILL
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, overload

from cloche.client._sync.processes import Command, kill_tree, send_input
from cloche.client.executions import Preparation, input_flags, input_frames
from cloche.client.output import Output
from cloche.client.paths import to_text
from cloche.client.refusals import refuse_process, refuse_run
from cloche.client.results import make_result
from cloche.errors import ClocheError, InvalidRequest, ProcessNotFound, ProtocolError, SandboxError
from cloche.link import frames
from cloche.models import ProcessInfo

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping, Sequence

    from cloche.client._sync.link import Link, Operation
    from cloche.client.executions import Execution
    from cloche.models import CommandResult

START_SECONDS: Final = 30.0
ABANDON_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 10.0
"""What the keeper gets to end an execution and tell so once its time is up."""


class Commands:
    """The commands of one sandbox: `sandbox.commands`."""

    def __init__(self, link: Link, preparation: Preparation) -> None:
        self._link = link
        self._preparation = preparation

    @overload
    def run(
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
    def run(
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
    ) -> Command: ...

    def run(
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
    ) -> CommandResult | Command:
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
            return self._start(execution, stdin)
        output = Output(execution.limits.output_bytes, on_stdout, on_stderr)
        # First: a program may run into a limit before this could be read behind its start.
        before = self._link.events()
        with self._link.start(execution.request, refuse_run(execution.cwd)) as operation:
            if isinstance(stdin, str | bytes):
                operation.feed(input_frames(stdin))
            started = None
            try:
                started = operation.expect(frames.Started, START_SECONDS)
                ended = self._follow(operation, output, execution.limits.timeout)
            except ProtocolError:
                raise
            except BaseException:
                self._abandon(operation, started)
                raise
            try:
                return make_result(
                    ended,
                    pid=started.pid,
                    streams=output.finish(),
                    limits=execution.limits,
                    before=before,
                    after=self._link.events() if ended.exit_code else before,
                )
            except ProtocolError as error:
                raise operation.broken(error.message) from error

    def _start(self, execution: Execution, stdin: str | bytes | bool | None) -> Command:
        before = self._link.events()
        with self._link.start(execution.request, refuse_run(execution.cwd)) as operation:
            started = operation.expect(frames.Started, START_SECONDS)
            command = Command(self._link, started.pid, limits=execution.limits, before=before)
        if isinstance(stdin, str | bytes):
            command.send_stdin(stdin)
            command.close_stdin()
        return command

    def _abandon(self, operation: Operation, started: frames.Started | None) -> None:
        """Nobody waits for it any more: it must not go on unseen."""
        with suppress(ClocheError):
            started = started or operation.expect(frames.Started, ABANDON_SECONDS)
            kill_tree(self._link, started.pid, ABANDON_SECONDS)

    def _follow(self, operation: Operation, output: Output, seconds: float) -> frames.Exit:
        late = "the keeper did not end an execution whose time is up"
        deadline = monotonic() + seconds + GRACE_SECONDS if seconds else None
        while True:
            wait = None if deadline is None else deadline - monotonic()
            # A keeper that goes on to send is late as well.
            if wait is not None and wait <= 0:
                raise operation.broken(late)
            try:
                frame = operation.receive(wait)
            except SandboxError as error:
                if isinstance(error.__cause__, TimeoutError):
                    raise operation.broken(late) from error
                raise
            if isinstance(frame, frames.Exit):
                return frame
            began = monotonic()
            try:
                output.add(frame)
            except ProtocolError as error:
                raise operation.broken(error.message) from error
            if deadline is not None:
                # However slow the callbacks are, the keeper gets its time to answer.
                deadline += monotonic() - began

    def list(self) -> builtins.list[ProcessInfo]:
        """Every process of the sandbox; first those that were started from here, ended ones among them."""
        found = self._link.collect(frames.Processes(), frames.Process)
        return [_to_info(process) for process in found]

    def connect(self, pid: int) -> Command:
        """A command that was started in the background, perhaps by another program.

        Raises: ProcessNotFound.
        """
        request = frames.Attach(flags=0, pid=pid, offset=(1 << 64) - 1)
        self._link.ask(request, frames.Started, refuse_process(pid))
        return Command(self._link, pid, limits=self._link.record.spec.limits, before=self._link.events())

    def kill(self, pid: int) -> bool:
        """End a command with all that it started, or any other process; False where there is none."""
        for scope in (frames.SCOPE_TREE, frames.SCOPE_PROCESS):
            request = frames.Signal(pid=pid, signal=SIGKILL, scope=scope)
            try:
                self._link.ask(request, frames.Ok, refuse_process(pid))
            except ProcessNotFound:
                continue
            return True
        return False

    def send_stdin(self, pid: int, data: str | bytes) -> None:
        """Write to a background command's standard input; returns when all of it has been taken.

        Raises: ProcessNotFound, InvalidRequest.
        """
        send_input(self._link, pid, data)


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
