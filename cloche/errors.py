"""Every error that Cloche raises.

ClocheError
├── InvalidRequest            the caller is wrong (also ValueError)
│   └── Unsupported           asked for what this engine or machine cannot enforce
├── NotFound                  (also LookupError)
│   ├── SandboxNotFound
│   ├── ImageNotFound
│   ├── RuntimeNotFound
│   ├── ProcessNotFound
│   └── ContextNotFound
├── FileError                 a file operation in a sandbox failed (also OSError: errno, strerror, filename)
├── CommandFailed             raised only by CommandResult.check()
├── CodeFailed                raised only by CodeResult.check()
├── CommandTimeout            raised only by CommandResult.check() (also TimeoutError)
├── SandboxError              the sandbox failed, or is gone
│   └── ProtocolError         its keeper talked nonsense
└── EngineError               the engine or this machine failed
"""

from __future__ import annotations

import os
from typing import Any, ClassVar


class ClocheError(Exception):
    """The base of them all: `code` is stable, `status` its HTTP status, `data` what belongs to it."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message


class InvalidRequest(ClocheError, ValueError):
    """What was asked for makes no sense: the message says what was found and what was expected."""

    code = "invalid_request"
    status = 400


class Unsupported(InvalidRequest):
    """What was asked for cannot be enforced here, and is refused rather than dropped."""

    code = "unsupported"
    status = 422


class NotFound(ClocheError, LookupError):
    """There is nothing by that name."""

    code = "not_found"
    status = 404


class SandboxNotFound(NotFound):
    """There is no sandbox with that id, or it has ended."""

    code = "sandbox_not_found"


class ImageNotFound(NotFound):
    """There is no image by that name."""

    code = "image_not_found"


class RuntimeNotFound(NotFound):
    """No image here has that language or version; the message lists what there is."""

    code = "runtime_not_found"


class ProcessNotFound(NotFound):
    """The sandbox knows no process with that number."""

    code = "process_not_found"


class ContextNotFound(NotFound):
    """The sandbox has no context with that id."""

    code = "context_not_found"


class FileError(ClocheError, OSError):
    """A file operation inside a sandbox failed: `errno`, `strerror` and `filename` as the kernel gave them."""

    code = "file_error"
    status = 409

    def __init__(self, message: str, *, errno: int, path: str) -> None:
        ClocheError.__init__(self, message, errno=errno, path=path)
        self.errno = errno
        self.strerror = os.strerror(errno)
        self.filename = path


class CommandFailed(ClocheError):
    """A command ended with another exit code than 0; `result` is all of it."""

    code = "command_failed"
    status = 409


class CodeFailed(ClocheError):
    """Code in a context raised something; `result` is all of it."""

    code = "code_failed"
    status = 409


class CommandTimeout(ClocheError, TimeoutError):
    """A command was ended by its time limit; `result` is what it did until then."""

    code = "command_timeout"
    status = 408


class SandboxError(ClocheError):
    """The sandbox could not be made, or ended while it was in use; the message gives the reason."""

    code = "sandbox_error"
    status = 502


class ProtocolError(SandboxError):
    """The keeper sent what the protocol does not allow; the sandbox has been ended for it."""

    code = "protocol_error"


class EngineError(ClocheError):
    """The engine or the machine failed: the message names the step, and what to repair."""

    code = "engine_error"
    status = 503
