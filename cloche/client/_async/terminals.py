"""Programs in a terminal: shells, editors, whatever wants a person at its keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from cloche.client._async.processes import kill_tree
from cloche.client.refusals import refuse_run
from cloche.errors import InvalidRequest, NotFound
from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from cloche.client._async.link import AsyncLink, AsyncOperation
    from cloche.client.executions import Preparation

START_SECONDS: Final = 30.0
MOST_LINES: Final = 4096


class AsyncPty:
    """The terminals of one sandbox: `sandbox.pty`."""

    def __init__(self, link: AsyncLink, preparation: Preparation) -> None:
        self._link = link
        self._preparation = preparation

    async def create(
        self,
        command: str | Sequence[str] | None = None,
        *,
        rows: int = 24,
        cols: int = 80,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: Literal["user", "root"] | None = None,
        timeout: float | None = None,
        on_data: Callable[[bytes], object] | None = None,
    ) -> AsyncTerminal:
        """Start a program (the shell where none is named) in a terminal; there is no time limit unless one is given.

        Raises: InvalidRequest, SandboxError.
        """
        execution = self._preparation.execution(
            [self._link.record.shell, "-i"] if command is None else command,
            flags=frames.RUN_PTY | frames.RUN_STDIN,
            env={"TERM": "xterm-256color", **(env or {})},
            cwd=cwd,
            user=user,
            timeout=timeout or 0,
            output_bytes=0,
            size=check_size(rows, cols),
        )
        operation = self._link.start(execution.request, refuse_run(execution.cwd))
        await operation.__aenter__()
        try:
            started = await operation.expect(frames.Started, START_SECONDS)
        except BaseException:
            await operation.hang_up()
            raise
        return AsyncTerminal(self._link, operation, started.pid, on_data)


class AsyncTerminal:
    """A program in a terminal. Read it by iterating or with `wait`; send to it from any thread or task."""

    def __init__(
        self, link: AsyncLink, operation: AsyncOperation, pid: int, on_data: Callable[[bytes], object] | None
    ) -> None:
        self._link = link
        self._operation = operation
        self._on_data = on_data
        self._ended: frames.Exit | None = None
        self.pid = pid
        """Its number inside the sandbox."""

    async def send(self, data: str | bytes) -> None:
        """Type this."""
        await self._send(frames.Stdin(data.encode() if isinstance(data, str) else data))

    async def resize(self, rows: int, cols: int) -> None:
        """Change the terminal's size; the program is told."""
        await self._send(frames.Resize(*check_size(rows, cols)))

    async def read(self, timeout: float | None = None) -> bytes:
        """What it wrote next; nothing at its end.

        Raises: TimeoutError where there is nothing within `timeout` seconds.
        """
        if self._ended:
            return b""
        frame = await self._operation.receive_within(timeout)
        if isinstance(frame, frames.Exit):
            self._ended = frame
            await self._operation.hang_up()
            return b""
        if not isinstance(frame, frames.Stdout):
            raise await self._operation.broken(f"{frame.NAME} was not expected from a terminal")
        data = bytes(frame.data)
        if self._on_data:
            self._on_data(data)
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    async def wait(self, timeout: float | None = None) -> int:
        """Its exit code, as the shell has it, when it has ended; `on_data` gets what it writes meanwhile.

        Raises: TimeoutError where it writes nothing for `timeout` seconds.
        """
        while True:
            await self.read(timeout)
            if self._ended:
                return 128 + self._ended.signal if self._ended.signal else self._ended.exit_code

    async def kill(self) -> bool:
        """End it with all that it started; False where it has ended already."""
        return await kill_tree(self._link, self.pid)

    async def _send(self, frame: frames.Frame) -> None:
        if self._ended or not await self._operation.send(frame):
            raise NotFound(f"the program in terminal {self.pid} has ended")


def check_size(rows: int, cols: int) -> tuple[int, int]:
    """Raises InvalidRequest for what no terminal is."""
    if not (1 <= rows <= MOST_LINES and 1 <= cols <= MOST_LINES):
        raise InvalidRequest(f"the terminal is {rows} x {cols}; 1 to {MOST_LINES} rows and columns were expected")
    return rows, cols
