"""The asyncio client: what is not the same words as the blocking one, and that the rest is there."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche import AsyncSandbox, Sandbox
from cloche.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Body = Callable[[AsyncSandbox], Awaitable[object]]

pytestmark = pytest.mark.usefixtures("home")
DEADLINE = 20.0


def drive(body: Body) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE), await AsyncSandbox.create(engine="host") as sandbox:
            await body(sandbox)

    asyncio.run(main())


def test_both_clients_have_the_same_methods() -> None:
    def names(thing: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(thing) if not name.startswith("_")}

    assert names(AsyncSandbox) == names(Sandbox)


def test_commands_run_side_by_side() -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(sandbox.commands.run(f"sleep 0.3; echo {i}")) for i in range(10)]
        assert [task.result().stdout for task in tasks] == [f"{i}\n" for i in range(10)]

    drive(body)


def test_a_command_that_is_cancelled_dies_with_its_tree() -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        up = asyncio.Event()
        mark = "161.80339"
        task = asyncio.create_task(
            sandbox.commands.run(f"(setsid sleep {mark} &); echo up; sleep {mark}", on_stdout=lambda _: up.set())
        )
        await up.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Another program is waited for.
        while any(mark in process.argv and process.state != "Z" for process in await sandbox.commands.list()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    drive(body)


def test_a_background_command_is_followed() -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run(["cat"], background=True, stdin=True)
        await command.send_stdin("x" * 400_000)
        await command.close_stdin()
        assert sum([chunk.size async for chunk in command]) == 400_000
        assert (await command.wait()).ok

    drive(body)


def test_input_and_output_flow_at_once() -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        text = "0123456789" * 400_000
        assert (await sandbox.commands.run(["cat"], stdin=text, output_bytes=0)).stdout == text

    drive(body)


def test_files_stream_both_ways(tmp_path: Path) -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        assert await sandbox.files.write("a/file", b"x" * 5_000_000) == 5_000_000
        assert sum([len(piece) async for piece in await sandbox.files.read("a/file", "stream")]) == 5_000_000
        assert await sandbox.files.download("a", tmp_path / "a") == 5_000_000
        with pytest.raises(FileError):
            await sandbox.files.read("none")

    drive(body)


def test_changes_are_watched() -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        async with await sandbox.files.watch() as watch:
            await sandbox.files.write("file", "x")
            async for event in watch:
                assert (event.kind, event.name) == ("made", "file")
                break

    drive(body)


def test_a_terminal_is_read_while_it_is_written_to() -> None:
    async def body(sandbox: AsyncSandbox) -> None:
        terminal = await sandbox.pty.create(["cat"])
        await terminal.send("hello\n")
        assert b"hello" in await terminal.read(timeout=5)
        await terminal.send("\x04")
        assert await terminal.wait(timeout=5) == 0

    drive(body)


def test_a_port_can_be_talked_to() -> None:
    server = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
        "c = s.accept()[0]; c.sendall(c.recv(9))"
    )

    async def body(sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run(["python3", "-c", server], background=True)
        port = 0
        async for chunk in command:
            port = int(chunk.data)
            break
        async with await sandbox.connect_port(port) as stream:
            await stream.write(b"ping")
            assert await stream.read() == b"ping"

    drive(body)


def test_the_blocking_client_needs_no_asyncio() -> None:
    code = "import sys; from cloche import Sandbox; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
