"""Interpreters that stay: variables survive from one piece of code to the next."""

from __future__ import annotations

import os
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Final

from cloche.client._async.processes import kill_tree
from cloche.client._async.turns import AsyncTurn, Listener, interrupt
from cloche.client.executions import PIECE
from cloche.client.languages import RUNTIMES, choose_language, default_id, make_request, make_start
from cloche.client.locks import try_lock
from cloche.client.refusals import refuse_process, refuse_run
from cloche.client.tags import Context, Found, find_contexts, find_runs, to_tag
from cloche.client.waiting import in_thread, pause
from cloche.errors import ContextNotFound, InvalidRequest, ProcessNotFound, SandboxError
from cloche.link import frames
from cloche.models import random_id
from cloche.sandboxes import boxes
from cloche.sandboxes.specs import check_environment

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping

    from cloche.client._async.link import AsyncLink, AsyncOperation
    from cloche.client.executions import Preparation
    from cloche.client.languages import Choice
    from cloche.displays import CodeResult, Display
    from cloche.models import Limits

START_SECONDS: Final = 30.0
TURN_SECONDS: Final = 3600.0
"""What others may take before it is our turn."""
END_SECONDS: Final = 10.0
"""Until one that was killed is gone."""
LOCK: Final = "contexts.lock"
LOCK_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.005
FLAGS: Final = frames.RUN_STDIN | frames.RUN_BACKGROUND | frames.RUN_CHANNEL


class AsyncContexts:
    """The contexts of one sandbox: `sandbox.contexts`. They outlive this program, and end with the sandbox."""

    def __init__(self, link: AsyncLink, preparation: Preparation) -> None:
        self._link = link
        self._preparation = preparation
        self._known: dict[str, Found] = {}

    async def create(
        self, language: str | None = None, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Context:
        """Start one: `python`, `javascript`, `bash`, also with a version, as `python3.10` and `node@22`.

        Raises: InvalidRequest, RuntimeNotFound, SandboxError.
        """
        context = await self._plan(random_id(), choose_language(language, self._own), cwd, env)
        await self._start_alone(context)
        return context

    async def list(self) -> builtins.list[Context]:
        """Those that are there: the default ones that were used, and those that were made."""
        return [found.context for found in await self._find() if found.ended is None]

    async def restart(self, context: str | Context) -> Context:
        """Begin anew: variables, imports and definitions are lost, the context stays.

        Raises: ContextNotFound, SandboxError.
        """
        found = await self._get(context)
        descriptor = await self._lock()
        try:
            await self._end(found.context.id)
            await self._start_alone(found.context)
        finally:
            os.close(descriptor)
        return found.context

    async def remove(self, context: str | Context) -> None:
        """End it.

        Raises: ContextNotFound.
        """
        found = await self._get(context)
        descriptor = await self._lock()
        try:
            await self._end(found.context.id)
        finally:
            os.close(descriptor)

    async def interrupt(self, context: str | Context) -> bool:
        """End what runs in it, and keep its variables; False where it has ended.

        Raises: ContextNotFound.
        """
        return await interrupt(self._link, (await self._get(context)).pid)

    async def run_code(
        self,
        code: str,
        *,
        language: str | None,
        context: str | Context | None,
        env: Mapping[str, str] | None,
        cwd: str | None,
        timeout: float | None,
        output_bytes: int | None,
        on_stdout: Callable[[str], object] | None,
        on_stderr: Callable[[str], object] | None,
        on_result: Callable[[Display], object] | None,
    ) -> CodeResult:
        """See `AsyncSandbox.run_code`."""
        if language is not None and context is not None:
            raise InvalidRequest("language and context are both given; a context has its language, give one of them")
        id = int.from_bytes(os.urandom(6))
        wanted, dialect = await self._wanted(language, context)
        limits = self._preparation.limits(timeout, output_bytes)
        folder = None if cwd is None else self._preparation.absolute(cwd)
        variables = check_environment(env or {})
        request = make_request(wanted.language, id, code, cwd=folder, env=variables, dialect=dialect)
        listener = Listener(on_stdout=on_stdout, on_stderr=on_stderr, on_result=on_result)
        while True:
            turn = await self._take_turn(wanted, limits)
            try:
                result = await turn.run(id, request, listener)
            finally:
                await turn.leave()
            if result.state_lost:
                self._known.pop(wanted.id, None)
            # One that ended while we waited never saw the code: a new one does.
            if not result.state_lost or result.execution_count or turn.is_first or result.limit_hit:
                break
        return replace(result, note=turn.note)

    async def _wanted(self, language: str | None, context: str | Context | None) -> tuple[Context, str | None]:
        """The context that is meant, whether it runs or not."""
        if context is not None:
            return (await self._get(context, also_ended=True)).context, None
        choice = choose_language(language, self._own)
        id = default_id(choice, self._own)
        known = self._known.get(id)
        return known.context if known else await self._plan(id, choice, None, None), choice.dialect

    async def _take_turn(self, wanted: Context, limits: Limits) -> AsyncTurn:
        """In that context, which is started where it is not there."""
        while True:
            known = self._known.get(wanted.id)
            operation = await self._attach(known.pid) if known else None
            if known and operation:
                return AsyncTurn(self._link, operation, known.pid, context=wanted, limits=limits)
            turn = await self._find_or_start(wanted, limits)
            if turn is not None:
                return turn

    async def _find_or_start(self, wanted: Context, limits: Limits) -> AsyncTurn | None:
        """The first turn in a new interpreter; None where there is one already, which is known then."""
        descriptor = await self._lock()
        try:
            last = next((found for found in await self._find() if found.context.id == wanted.id), None)
            if last is not None and last.ended is None:
                self._known[wanted.id] = last
                return None
            operation, pid = await self._start(wanted)
        finally:
            os.close(descriptor)
        self._known[wanted.id] = Found(context=wanted, pid=pid, ended=None)
        how = last.ended if last else ""
        note = f"this is a new interpreter: the one before {how}, and what it knew is lost" if how else None
        return AsyncTurn(self._link, operation, pid, context=wanted, limits=limits, is_first=True, note=note)

    async def _lock(self) -> int:
        """So that two who begin at once get one interpreter; held only while one is looked for, started or ended."""
        deadline = monotonic() + LOCK_SECONDS
        path = self._link.record.box.folder / LOCK
        try:
            while (descriptor := try_lock(path)) is None:
                if monotonic() > deadline:
                    raise SandboxError(f"another program has held {str(path)!r} for {LOCK_SECONDS:g} s; end it")
                await pause(PAUSE_SECONDS)
        except FileNotFoundError as error:
            raise await self._link.explain(ConnectionRefusedError(*error.args)) from error
        return descriptor

    async def _attach(self, pid: int) -> AsyncOperation | None:
        """A connection on which it is our turn; None where the interpreter has ended."""
        request = frames.Attach(flags=frames.ATTACH_OWN, pid=pid, offset=0)
        operation = self._link.start(request, refuse_process(pid))
        await operation.__aenter__()
        try:
            await operation.expect(frames.Started, TURN_SECONDS)
        except ProcessNotFound:
            await operation.hang_up()
            return None
        except SandboxError as error:
            await operation.hang_up()
            if isinstance(error.__cause__, TimeoutError):
                raise SandboxError(f"others have had the context for {TURN_SECONDS:g} s; take another") from error
            raise
        except BaseException:
            await operation.hang_up()
            raise
        return operation

    async def _start(self, context: Context) -> tuple[AsyncOperation, int]:
        """A new interpreter, and the first turn in it."""
        argv, first = make_start(context.language)
        choice, path = await in_thread(boxes.find_runtime, self._link.record, context.runtime)
        execution = self._preparation.execution(
            [choice.path, *argv],
            flags=FLAGS,
            env={**path, **context.env},
            cwd=context.cwd,
            timeout=0,
            output_bytes=0,
            tag=to_tag(context),
        )
        operation = self._link.start(execution.request, refuse_run(context.cwd))
        await operation.__aenter__()
        try:
            for start in range(0, len(first), PIECE):
                await operation.send(frames.Stdin(first[start : start + PIECE]))
            started = await operation.expect(frames.Started, START_SECONDS)
        except BaseException:
            await operation.hang_up()
            raise
        return operation, started.pid

    async def _start_alone(self, context: Context) -> None:
        """A new interpreter, in which nothing runs yet.

        Raises: SandboxError where it ends at once.
        """
        operation, pid = await self._start(context)
        turn = AsyncTurn(self._link, operation, pid, context=context, limits=self._link.record.spec.limits)
        try:
            await turn.wait_until_ready()
        finally:
            await turn.leave()
        self._known[context.id] = Found(context=context, pid=pid, ended=None)

    async def _end(self, id: str) -> None:
        self._known.pop(id, None)
        deadline = monotonic() + END_SECONDS
        while pids := find_runs(await self._link.collect(frames.Processes(), frames.Process), id):
            for pid in pids:
                await kill_tree(self._link, pid)
            if monotonic() > deadline:
                raise SandboxError(f"the context {id!r} did not end within {END_SECONDS:g} s")
            await pause(PAUSE_SECONDS)

    async def _plan(self, id: str, choice: Choice, cwd: str | None, env: Mapping[str, str] | None) -> Context:
        runtime, _ = await in_thread(boxes.find_runtime, self._link.record, choice.runtime)
        folder = self._preparation.absolute(cwd) if cwd else self._preparation.default_cwd()
        variables = check_environment(env or {})
        return Context(id=id, language=choice.language, runtime=runtime.name, cwd=folder, env=variables)

    async def _get(self, context: str | Context, *, also_ended: bool = False) -> Found:
        id = context.id if isinstance(context, Context) else context
        there = await self._find()
        for found in there:
            if found.context.id == id and (also_ended or found.ended is None):
                return found
        names = ", ".join(found.context.id for found in there if found.ended is None) or "none"
        raise ContextNotFound(f"there is no context {id!r}; there is {names}. Contexts end with their sandbox")

    async def _find(self) -> builtins.list[Found]:
        return find_contexts(await self._link.collect(frames.Processes(), frames.Process))

    @property
    def _own(self) -> str:
        """The sandbox's runtime; Python where that runs no contexts."""
        name = self._link.record.runtime.name
        return name if name.rstrip("0123456789.") in RUNTIMES.values() else RUNTIMES["python"]
