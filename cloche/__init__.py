"""Cloche runs code that an AI agent wrote, where it can do no harm and where a person can see everything it does.

from cloche import Sandbox

with Sandbox.create() as sandbox:
    print(sandbox.commands.run(["python", "-c", "print(1 + 1)"]).stdout)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cloche.version import __version__

if TYPE_CHECKING:
    from cloche.client._async.files import AsyncWatch
    from cloche.client._async.processes import AsyncCommand
    from cloche.client._async.runs import AsyncRun
    from cloche.client._async.sandbox import AsyncSandbox
    from cloche.client._async.streams import AsyncStream
    from cloche.client._async.terminals import AsyncTerminal
    from cloche.client._sync.files import Watch
    from cloche.client._sync.processes import Command
    from cloche.client._sync.runs import Run
    from cloche.client._sync.sandbox import Sandbox
    from cloche.client._sync.streams import Stream
    from cloche.client._sync.terminals import Terminal
    from cloche.client.tags import Context
    from cloche.displays import CodeError, CodeResult, Cut, Display
    from cloche.errors import (
        ClocheError,
        CodeFailed,
        CommandFailed,
        CommandTimeout,
        ContextNotFound,
        EngineError,
        FileError,
        ImageNotFound,
        InvalidRequest,
        NotFound,
        ProcessNotFound,
        ProtocolError,
        RuntimeNotFound,
        SandboxError,
        SandboxNotFound,
        Unsupported,
    )
    from cloche.models import CommandResult, Entry, FileEvent, Limits, ListeningPort, OutputChunk, ProcessInfo, Usage

__all__ = [
    "AsyncCommand",
    "AsyncRun",
    "AsyncSandbox",
    "AsyncStream",
    "AsyncTerminal",
    "AsyncWatch",
    "ClocheError",
    "CodeError",
    "CodeFailed",
    "CodeResult",
    "Command",
    "CommandFailed",
    "CommandResult",
    "CommandTimeout",
    "Context",
    "ContextNotFound",
    "Cut",
    "Display",
    "EngineError",
    "Entry",
    "FileError",
    "FileEvent",
    "ImageNotFound",
    "InvalidRequest",
    "Limits",
    "ListeningPort",
    "NotFound",
    "OutputChunk",
    "ProcessInfo",
    "ProcessNotFound",
    "ProtocolError",
    "Run",
    "RuntimeNotFound",
    "Sandbox",
    "SandboxError",
    "SandboxNotFound",
    "Stream",
    "Terminal",
    "Unsupported",
    "Usage",
    "Watch",
    "__version__",
]

_CLIENT: Final = {
    "Command": "processes",
    "Run": "runs",
    "Sandbox": "sandbox",
    "Stream": "streams",
    "Terminal": "terminals",
    "Watch": "files",
}
_PLACES: Final = {
    "CodeError": "cloche.displays",
    "CodeResult": "cloche.displays",
    "Context": "cloche.client.tags",
    "Cut": "cloche.displays",
    "Display": "cloche.displays",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, and no more: the blocking client needs no asyncio."""
    if name not in __all__:
        raise AttributeError(f"module 'cloche' has no attribute {name!r}")
    value = getattr(import_module(_module_of(name)), name)
    globals()[name] = value
    return value


def _module_of(name: str) -> str:
    plain = name.removeprefix("Async")
    if plain in _CLIENT:
        return f"cloche.client.{'_sync' if plain == name else '_async'}.{_CLIENT[plain]}"
    return _PLACES.get(name) or ("cloche.models" if hasattr(import_module("cloche.models"), name) else "cloche.errors")
