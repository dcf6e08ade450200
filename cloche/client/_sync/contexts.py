# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""Interpreters that stay: variables survive from one piece of code to the next."""

from __future__ import annotations

import os
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Final

from cloche.client._sync.processes import kill_tree
from cloche.client._sync.turns import Listener, Turn, interrupt
from cloche.client.executions import PIECE
from cloche.client.languages import RUNTIMES, choose_language, default_id, make_request, make_start
from cloche.client.locks import try_lock
from cloche.client.refusals import refuse_process, refuse_run
from cloche.client.tags import Context, Found, find_contexts, find_runs, to_tag
from cloche.client.waiting import in_place, pause_in_place
from cloche.errors import ContextNotFound, InvalidRequest, ProcessNotFound, SandboxError
from cloche.link import frames
from cloche.models import random_id
from cloche.sandboxes import boxes
from cloche.sandboxes.specs import check_environment

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping

    from cloche.client._sync.link import Link, Operation
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


class Contexts:
    """The contexts of one sandbox: `sandbox.contexts`. They outlive this program, and end with the sandbox."""

    def __init__(self, link: Link, preparation: Preparation) -> None:
        self._link = link
        self._preparation = preparation
        self._known: dict[str, Found] = {}

    def create(
        self, language: str | None = None, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Context:
        """Start one: `python`, `javascript`, `bash`, also with a version, as `python3.10` and `node@22`.

        Raises: InvalidRequest, RuntimeNotFound, SandboxError.
        """
        context = self._plan(random_id(), choose_language(language, self._own), cwd, env)
        self._start_alone(context)
        return context

    def list(self) -> builtins.list[Context]:
        """Those that are there: the default ones that were used, and those that were made."""
        return [found.context for found in self._find() if found.ended is None]

    def restart(self, context: str | Context) -> Context:
        """Begin anew: variables, imports and definitions are lost, the context stays.

        Raises: ContextNotFound, SandboxError.
        """
        found = self._get(context)
        descriptor = self._lock()
        try:
            self._end(found.context.id)
            self._start_alone(found.context)
        finally:
            os.close(descriptor)
        return found.context

    def remove(self, context: str | Context) -> None:
        """End it.

        Raises: ContextNotFound.
        """
        found = self._get(context)
        descriptor = self._lock()
        try:
            self._end(found.context.id)
        finally:
            os.close(descriptor)

    def interrupt(self, context: str | Context) -> bool:
        """End what runs in it, and keep its variables; False where it has ended.

        Raises: ContextNotFound.
        """
        return interrupt(self._link, (self._get(context)).pid)

    def run_code(
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
        """See `Sandbox.run_code`."""
        if language is not None and context is not None:
            raise InvalidRequest("language and context are both given; a context has its language, give one of them")
        id = int.from_bytes(os.urandom(6))
        wanted, dialect = self._wanted(language, context)
        limits = self._preparation.limits(timeout, output_bytes)
        folder = None if cwd is None else self._preparation.absolute(cwd)
        variables = check_environment(env or {})
        request = make_request(wanted.language, id, code, cwd=folder, env=variables, dialect=dialect)
        listener = Listener(on_stdout=on_stdout, on_stderr=on_stderr, on_result=on_result)
        while True:
            turn = self._take_turn(wanted, limits)
            try:
                result = turn.run(id, request, listener)
            finally:
                turn.leave()
            if result.state_lost:
                self._known.pop(wanted.id, None)
            # One that ended while we waited never saw the code: a new one does.
            if not result.state_lost or result.execution_count or turn.is_first or result.limit_hit:
                break
        return replace(result, note=turn.note)

    def _wanted(self, language: str | None, context: str | Context | None) -> tuple[Context, str | None]:
        """The context that is meant, whether it runs or not."""
        if context is not None:
            return (self._get(context, also_ended=True)).context, None
        choice = choose_language(language, self._own)
        id = default_id(choice, self._own)
        known = self._known.get(id)
        return known.context if known else self._plan(id, choice, None, None), choice.dialect

    def _take_turn(self, wanted: Context, limits: Limits) -> Turn:
        """In that context, which is started where it is not there."""
        while True:
            known = self._known.get(wanted.id)
            operation = self._attach(known.pid) if known else None
            if known and operation:
                return Turn(self._link, operation, known.pid, context=wanted, limits=limits)
            turn = self._find_or_start(wanted, limits)
            if turn is not None:
                return turn

    def _find_or_start(self, wanted: Context, limits: Limits) -> Turn | None:
        """The first turn in a new interpreter; None where there is one already, which is known then."""
        descriptor = self._lock()
        try:
            last = next((found for found in self._find() if found.context.id == wanted.id), None)
            if last is not None and last.ended is None:
                self._known[wanted.id] = last
                return None
            operation, pid = self._start(wanted)
        finally:
            os.close(descriptor)
        self._known[wanted.id] = Found(context=wanted, pid=pid, ended=None)
        how = last.ended if last else ""
        note = f"this is a new interpreter: the one before {how}, and what it knew is lost" if how else None
        return Turn(self._link, operation, pid, context=wanted, limits=limits, is_first=True, note=note)

    def _lock(self) -> int:
        """So that two who begin at once get one interpreter; held only while one is looked for, started or ended."""
        deadline = monotonic() + LOCK_SECONDS
        path = self._link.record.box.folder / LOCK
        try:
            while (descriptor := try_lock(path)) is None:
                if monotonic() > deadline:
                    raise SandboxError(f"another program has held {str(path)!r} for {LOCK_SECONDS:g} s; end it")
                pause_in_place(PAUSE_SECONDS)
        except FileNotFoundError as error:
            raise self._link.explain(ConnectionRefusedError(*error.args)) from error
        return descriptor

    def _attach(self, pid: int) -> Operation | None:
        """A connection on which it is our turn; None where the interpreter has ended."""
        request = frames.Attach(flags=frames.ATTACH_OWN, pid=pid, offset=0)
        operation = self._link.start(request, refuse_process(pid))
        operation.__enter__()
        try:
            operation.expect(frames.Started, TURN_SECONDS)
        except ProcessNotFound:
            operation.hang_up()
            return None
        except SandboxError as error:
            operation.hang_up()
            if isinstance(error.__cause__, TimeoutError):
                raise SandboxError(f"others have had the context for {TURN_SECONDS:g} s; take another") from error
            raise
        except BaseException:
            operation.hang_up()
            raise
        return operation

    def _start(self, context: Context) -> tuple[Operation, int]:
        """A new interpreter, and the first turn in it."""
        argv, first = make_start(context.language)
        choice, path = in_place(boxes.find_runtime, self._link.record, context.runtime)
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
        operation.__enter__()
        try:
            for start in range(0, len(first), PIECE):
                operation.send(frames.Stdin(first[start : start + PIECE]))
            started = operation.expect(frames.Started, START_SECONDS)
        except BaseException:
            operation.hang_up()
            raise
        return operation, started.pid

    def _start_alone(self, context: Context) -> None:
        """A new interpreter, in which nothing runs yet.

        Raises: SandboxError where it ends at once.
        """
        operation, pid = self._start(context)
        turn = Turn(self._link, operation, pid, context=context, limits=self._link.record.spec.limits)
        try:
            turn.wait_until_ready()
        finally:
            turn.leave()
        self._known[context.id] = Found(context=context, pid=pid, ended=None)

    def _end(self, id: str) -> None:
        self._known.pop(id, None)
        deadline = monotonic() + END_SECONDS
        while pids := find_runs(self._link.collect(frames.Processes(), frames.Process), id):
            for pid in pids:
                kill_tree(self._link, pid)
            if monotonic() > deadline:
                raise SandboxError(f"the context {id!r} did not end within {END_SECONDS:g} s")
            pause_in_place(PAUSE_SECONDS)

    def _plan(self, id: str, choice: Choice, cwd: str | None, env: Mapping[str, str] | None) -> Context:
        runtime, _ = in_place(boxes.find_runtime, self._link.record, choice.runtime)
        folder = self._preparation.absolute(cwd) if cwd else self._preparation.default_cwd()
        variables = check_environment(env or {})
        return Context(id=id, language=choice.language, runtime=runtime.name, cwd=folder, env=variables)

    def _get(self, context: str | Context, *, also_ended: bool = False) -> Found:
        id = context.id if isinstance(context, Context) else context
        there = self._find()
        for found in there:
            if found.context.id == id and (also_ended or found.ended is None):
                return found
        names = ", ".join(found.context.id for found in there if found.ended is None) or "none"
        raise ContextNotFound(f"there is no context {id!r}; there is {names}. Contexts end with their sandbox")

    def _find(self) -> builtins.list[Found]:
        return find_contexts(self._link.collect(frames.Processes(), frames.Process))

    @property
    def _own(self) -> str:
        """The sandbox's runtime; Python where that runs no contexts."""
        name = self._link.record.runtime.name
        return name if name.rstrip("0123456789.") in RUNTIMES.values() else RUNTIMES["python"]
