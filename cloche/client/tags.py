"""What a context is, as its process carries it: any program that finds the process knows the context."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from cloche.link import frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX: Final = b"context "
_ID: Final = re.compile(r"[a-z0-9.-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """An interpreter that stays, in a sandbox."""

    id: str
    """The default one of a language is called like it."""
    language: str
    runtime: str
    """With its version: `python3.12`."""
    cwd: str
    """Where it began."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its own variables, besides the sandbox's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A process that is or was a context."""

    context: Context
    pid: int
    ended: str | None
    """How it ended, in words; empty where that was asked for."""


def to_tag(context: Context) -> str:
    """What the process is to carry."""
    return PREFIX.decode() + json.dumps(asdict(context), separators=(",", ":"))


def find_contexts(processes: Iterable[frames.Process]) -> list[Found]:
    """Those among the processes of a sandbox, the newest of each id; what makes no sense is none."""
    found: dict[str, Found] = {}
    for process in sorted(processes, key=lambda process: process.started_ns):
        context = _from_tag(bytes(process.tag))
        if context is not None and process.flags & frames.PROCESS_RUN:
            ended = _how_ended(process) if process.flags & frames.PROCESS_ENDED else None
            found[context.id] = Found(context=context, pid=process.pid, ended=ended)
    return list(found.values())


def find_runs(processes: Iterable[frames.Process], id: str) -> list[int]:
    """All processes that are that context and have not ended; one is what there should be."""
    return [
        process.pid
        for process in processes
        if process.flags & frames.PROCESS_RUN and not process.flags & frames.PROCESS_ENDED
        for context in [_from_tag(bytes(process.tag))]
        if context is not None and context.id == id
    ]


def how_ended(exit_code: int, signal: int) -> str:
    """In words."""
    return f"was killed by signal {signal}" if signal else f"ended with exit code {exit_code}"


def _how_ended(process: frames.Process) -> str:
    is_asked_for = process.flags & frames.PROCESS_KILLED
    return "" if is_asked_for else how_ended(process.exit_code, process.signal)


def _from_tag(tag: bytes) -> Context | None:
    if not tag.startswith(PREFIX):
        return None
    try:
        values = cast("dict[str, Any]", json.loads(tag[len(PREFIX) :]))
        words = [str(values[name]) for name in ("id", "language", "runtime", "cwd")]
        env = {str(name): str(value) for name, value in values["env"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    context = Context(id=words[0], language=words[1], runtime=words[2], cwd=words[3], env=env)
    return context if _ID.fullmatch(context.id) else None
