"""A sandbox: `AsyncSandbox` for asyncio, and generated from it `Sandbox`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, Self

from cloche.client._async.commands import AsyncCommands
from cloche.client._async.link import AsyncLink
from cloche.client.executions import Preparation
from cloche.client.refusals import refuse_port
from cloche.client.waiting import in_thread
from cloche.errors import InvalidRequest, SandboxError
from cloche.link import frames
from cloche.models import ListeningPort, Usage
from cloche.sandboxes import boxes, finding
from cloche.sandboxes.specs import make_spec
from cloche.sandboxes.sweep import sweep_now_and_then

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Collection, Mapping
    from os import PathLike
    from types import TracebackType

    from cloche.client._async.contexts import AsyncContexts
    from cloche.client._async.files import AsyncFiles
    from cloche.client._async.streams import AsyncStream
    from cloche.client._async.terminals import AsyncPty
    from cloche.client.tags import Context
    from cloche.displays import CodeResult, Display
    from cloche.models import Limits
    from cloche.sandboxes.records import Record, RuntimeChoice

INIT_SECONDS: Final = 120.0
INIT_LINES: Final = 20
REPLY_SECONDS: Final = 30.0


class AsyncSandbox:
    """An isolated box on this machine. Made by `create` or found by `connect`; safe to use from several threads."""

    def __init__(self, record: Record) -> None:
        self._link = AsyncLink(record)
        self._preparation = Preparation(record)
        self._record = record
        self.id = record.box.id
        """20 of [a-z0-9]; enough to `connect` from another program."""
        self.commands = AsyncCommands(self._link, self._preparation)

    @cached_property
    def files(self) -> AsyncFiles:
        """Its files."""
        # Here and below: a program that runs one command need not wait for what it does not use.
        from cloche.client._async.files import AsyncFiles

        return AsyncFiles(self._link, self._preparation)

    @cached_property
    def pty(self) -> AsyncPty:
        """Its terminals."""
        from cloche.client._async.terminals import AsyncPty

        return AsyncPty(self._link, self._preparation)

    @cached_property
    def contexts(self) -> AsyncContexts:
        """Its interpreters that stay."""
        from cloche.client._async.contexts import AsyncContexts

        return AsyncContexts(self._link, self._preparation)

    @classmethod
    async def create(
        cls,
        runtime: str | None = None,
        *,
        image: str | None = None,
        engine: str | None = None,
        cpus: float | None = None,
        memory_mb: int | None = None,
        disk_mb: int | None = None,
        inodes: int | None = None,
        pids: int | None = None,
        timeout: float | None = None,
        output_bytes: int | None = None,
        env: Mapping[str, str] | None = None,
        workspace: str | PathLike[str] | None = None,
        user: Literal["user", "root"] = "user",
        init_script: str | None = None,
        name: str | None = None,
        idle_timeout: float | None = None,
        lifetime: float | None = None,
        bound: bool = False,
        without: Collection[str] = (),
    ) -> Self:
        """Make a sandbox. What is not given has the default of `Limits`; what can't be enforced here is refused.

        `workspace` is a folder of this machine to be seen at /workspace: `/path` or `/path:ro` to read, `/path:rw`
        to write. `timeout` and `output_bytes` are for each execution, 0 means none. `init_script` runs first, as the
        sandbox's user, within 120 s; where it fails there is no sandbox.

        It outlives this program, unless it is `bound` to it, and ends by itself when nobody has used it for
        `idle_timeout` seconds (600 where nothing is said; processes in the background do not count as use), and in
        any case after `lifetime` seconds (30 days); 0 means never.

        A limit that can't be enforced on this machine for this user is an error, unless `without` names it: then the
        sandbox is made all the same, and `missing` says what it lacks.

        Raises: InvalidRequest, Unsupported, ImageNotFound, RuntimeNotFound, EngineError, SandboxError.
        """
        limits = {
            "cpus": cpus,
            "memory_mb": memory_mb,
            "disk_mb": disk_mb,
            "inodes": inodes,
            "pids": pids,
            "timeout": timeout,
            "output_bytes": output_bytes,
        }
        spec = make_spec(
            limits={key: value for key, value in limits.items() if value is not None},
            image="host" if image is None else image,
            engine="embedded" if engine is None else engine,
            env=env,
            user=user,
            workspace=workspace,
            name=name,
            idle_timeout=idle_timeout,
            lifetime=lifetime,
            without=without,
        )
        await in_thread(sweep_now_and_then)
        sandbox = cls(await in_thread(boxes.create, spec, runtime, is_bound=bound))
        if init_script is not None:
            await sandbox._run_init_script(init_script)
        return sandbox

    @classmethod
    async def connect(cls, id: str) -> Self:
        """A sandbox of this machine, by its id or its name.

        Raises: SandboxNotFound.
        """
        return cls(await in_thread(finding.find, id))

    @classmethod
    async def list(cls) -> builtins.list[Self]:
        """The sandboxes of this machine, the oldest first."""
        return [cls(record) for record in await in_thread(finding.all_boxes)]

    @property
    def name(self) -> str | None:
        """The name that it was given."""
        return self._record.spec.name

    @property
    def runtime(self) -> RuntimeChoice:
        """The interpreter that was chosen, and why where it is not the default."""
        return self._record.runtime

    @property
    def engine(self) -> str:
        """What made it: `embedded:crun`, `embedded:runc`, `host`."""
        return self._record.box.engine

    @property
    def limits(self) -> Limits:
        """What it may use at most."""
        return self._record.spec.limits

    @property
    def home(self) -> str:
        """The home folder of its user, inside."""
        return self._record.identity(self._record.spec.user).home

    @property
    def missing(self) -> builtins.list[str]:
        """The limits that are not in force, of those that `create` was told to go without."""
        return str(self._record.box.state.get("missing", "")).split()

    async def kill(self) -> bool:
        """End it: every process, every file; False where it was gone already."""
        return await self._link.delete()

    async def is_running(self) -> bool:
        """True while its keeper is there."""
        return await self._link.is_alive()

    async def usage(self) -> Usage:
        """What it uses at this moment."""
        inside = await self._link.ask(frames.Usage(), frames.UsageIs)
        account = await self._link.usage()
        events = self._link.events()
        return Usage(
            memory_bytes=account.memory_bytes,
            cpu_seconds=account.cpu_seconds,
            processes=inside.processes,
            disk_bytes=inside.disk_bytes,
            disk_free_bytes=inside.disk_free,
            inodes=inside.inodes,
            inodes_free=inside.inodes_free,
            oom_kills=events.oom_kills,
            pids_refused=events.pids_refused,
            idle_seconds=inside.idle_ms / 1000,
        )

    async def run_code(
        self,
        code: str,
        *,
        language: str | None = None,
        context: str | Context | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        output_bytes: int | None = None,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        on_result: Callable[[Display], object] | None = None,
    ) -> CodeResult:
        """Run code in an interpreter that stays: variables, imports and definitions are there for the next piece.

        `language` is `python`, `javascript` (also `typescript`) or `bash`, with a version where one is wanted
        (`python3.10`); where nothing is said it is the sandbox's own. Each has a default context, made on first use;
        `context` names another, from `contexts.create`. In a context one piece runs at a time: others wait.

        `env` holds for this piece only, `cwd` changes the context's folder. When the time is up the code is
        interrupted and the variables stay; only an interpreter that does not obey is ended, and the result says so.

        Raises: InvalidRequest, RuntimeNotFound, ContextNotFound, SandboxError. What the code raises is in the result.
        """
        return await self.contexts.run_code(
            code,
            language=language,
            context=context,
            env=env,
            cwd=cwd,
            timeout=timeout,
            output_bytes=output_bytes,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            on_result=on_result,
        )

    async def ports(self) -> builtins.list[ListeningPort]:
        """What listens inside."""
        import ipaddress

        found = await self._link.collect(frames.Ports(), frames.Port)
        return [
            ListeningPort(port=port.port, address=str(ipaddress.ip_address(port.address)), uid=port.uid)
            for port in found
        ]

    async def connect_port(self, port: int) -> AsyncStream:
        """A connection to a port that something inside listens on, on its loopback.

        Raises: InvalidRequest, NotFound.
        """
        if not 1 <= port <= 65535:
            raise InvalidRequest(f"port is {port}; 1 to 65535 was expected")
        operation = self._link.start(frames.Connect(port), refuse_port(port))
        await operation.__aenter__()
        try:
            await operation.expect(frames.Ok, REPLY_SECONDS)
        except BaseException:
            await operation.hang_up()
            raise
        from cloche.client._async.streams import AsyncStream

        return AsyncStream(operation)

    async def _run_init_script(self, script: str) -> None:
        try:
            result = await self.commands.run([self._record.shell, "-c", script], timeout=INIT_SECONDS, tag="init")
        except BaseException:
            await self.kill()
            raise
        if result.ok:
            return
        await self.kill()
        lines = (result.stdout + result.stderr).strip().splitlines()[-INIT_LINES:]
        reason = result.message or f"exit code {result.exit_code}"
        raise SandboxError("\n".join([f"the init script failed: {reason}; its last lines:", *lines]), result=result)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.engine}>"
