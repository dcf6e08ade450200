# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""A sandbox: `Sandbox`, generated from `AsyncSandbox`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, Self

from cloche.client._sync.commands import Commands
from cloche.client._sync.link import Link
from cloche.client.executions import Preparation
from cloche.client.refusals import refuse_port
from cloche.client.waiting import in_place
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

    from cloche.client._sync.contexts import Contexts
    from cloche.client._sync.files import Files
    from cloche.client._sync.streams import Stream
    from cloche.client._sync.terminals import Pty
    from cloche.client.tags import Context
    from cloche.displays import CodeResult, Display
    from cloche.models import Limits
    from cloche.sandboxes.records import Record, RuntimeChoice

INIT_SECONDS: Final = 120.0
INIT_LINES: Final = 20
REPLY_SECONDS: Final = 30.0


class Sandbox:
    """An isolated box on this machine. Made by `create` or found by `connect`; safe to use from several threads."""

    def __init__(self, record: Record) -> None:
        self._link = Link(record)
        self._preparation = Preparation(record)
        self._record = record
        self.id = record.box.id
        """20 of [a-z0-9]; enough to `connect` from another program."""
        self.commands = Commands(self._link, self._preparation)

    @cached_property
    def files(self) -> Files:
        """Its files."""
        # Here and below: a program that runs one command need not wait for what it does not use.
        from cloche.client._sync.files import Files

        return Files(self._link, self._preparation)

    @cached_property
    def pty(self) -> Pty:
        """Its terminals."""
        from cloche.client._sync.terminals import Pty

        return Pty(self._link, self._preparation)

    @cached_property
    def contexts(self) -> Contexts:
        """Its interpreters that stay."""
        from cloche.client._sync.contexts import Contexts

        return Contexts(self._link, self._preparation)

    @classmethod
    def create(
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
        in_place(sweep_now_and_then)
        sandbox = cls(in_place(boxes.create, spec, runtime, is_bound=bound))
        if init_script is not None:
            sandbox._run_init_script(init_script)
        return sandbox

    @classmethod
    def connect(cls, id: str) -> Self:
        """A sandbox of this machine, by its id or its name.

        Raises: SandboxNotFound.
        """
        return cls(in_place(finding.find, id))

    @classmethod
    def list(cls) -> builtins.list[Self]:
        """The sandboxes of this machine, the oldest first."""
        return [cls(record) for record in in_place(finding.all_boxes)]

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

    def kill(self) -> bool:
        """End it: every process, every file; False where it was gone already."""
        return self._link.delete()

    def is_running(self) -> bool:
        """True while its keeper is there."""
        return self._link.is_alive()

    def usage(self) -> Usage:
        """What it uses at this moment."""
        inside = self._link.ask(frames.Usage(), frames.UsageIs)
        account = self._link.usage()
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

    def run_code(
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
        return self.contexts.run_code(
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

    def ports(self) -> builtins.list[ListeningPort]:
        """What listens inside."""
        import ipaddress

        found = self._link.collect(frames.Ports(), frames.Port)
        return [
            ListeningPort(port=port.port, address=str(ipaddress.ip_address(port.address)), uid=port.uid)
            for port in found
        ]

    def connect_port(self, port: int) -> Stream:
        """A connection to a port that something inside listens on, on its loopback.

        Raises: InvalidRequest, NotFound.
        """
        if not 1 <= port <= 65535:
            raise InvalidRequest(f"port is {port}; 1 to 65535 was expected")
        operation = self._link.start(frames.Connect(port), refuse_port(port))
        operation.__enter__()
        try:
            operation.expect(frames.Ok, REPLY_SECONDS)
        except BaseException:
            operation.hang_up()
            raise
        from cloche.client._sync.streams import Stream

        return Stream(operation)

    def _run_init_script(self, script: str) -> None:
        try:
            result = self.commands.run([self._record.shell, "-c", script], timeout=INIT_SECONDS, tag="init")
        except BaseException:
            self.kill()
            raise
        if result.ok:
            return
        self.kill()
        lines = (result.stdout + result.stderr).strip().splitlines()[-INIT_LINES:]
        reason = result.message or f"exit code {result.exit_code}"
        raise SandboxError("\n".join([f"the init script failed: {reason}; its last lines:", *lines]), result=result)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.engine}>"
