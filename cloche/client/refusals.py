"""What it means to the caller that a keeper answers ERROR: one function for each kind of request."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from cloche.errors import ClocheError, FileError, InvalidRequest, NotFound, ProcessNotFound, ProtocolError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche.link import frames

LAST_ERRNO = 4095


def words_of(error: frames.Error) -> str:
    """What the keeper says, for a person: one line of bounded length, no control characters."""
    text = error.message[:500].decode("utf-8", "replace")
    text = "".join(char if char.isprintable() else "�" for char in text)
    return text or (os.strerror(error.code) if error.code <= LAST_ERRNO else f"error {error.code}")


def refuse_any(error: frames.Error) -> ClocheError:
    """For requests of which nothing better is known."""
    if error.code == errno.EPROTONOSUPPORT:
        return ProtocolError("the sandbox was made by another version of Cloche; delete it and make another")
    if error.code == errno.EAGAIN:
        return SandboxError(f"the sandbox is too busy: {words_of(error)}; try again when less of it runs")
    return SandboxError(f"the keeper refused: {words_of(error)}")


def refuse_run(cwd: str) -> Callable[[frames.Error], ClocheError]:
    """For starting a process in `cwd`."""

    def refuse(error: frames.Error) -> ClocheError:
        is_about_cwd = b"working directory" in error.message
        if is_about_cwd and error.code in (
            errno.ENOENT,
            errno.ENOTDIR,
            errno.EACCES,
            errno.ELOOP,
            errno.ENAMETOOLONG,
        ):
            return InvalidRequest(f"cwd is {cwd!r}, which can't be entered: {os.strerror(error.code)}")
        return refuse_any(error)

    return refuse


def refuse_process(pid: int) -> Callable[[frames.Error], ClocheError]:
    """For a request about a process."""

    def refuse(error: frames.Error) -> ClocheError:
        # EPERM: the keeper itself or, on the engine `host`, a process that is not the sandbox's.
        if error.code in (errno.ESRCH, errno.ENOENT, errno.EPERM):
            return ProcessNotFound(f"there is no process {pid} of the sandbox's, or it has ended")
        if error.code in (errno.EINVAL, errno.EPIPE, errno.EBADF, errno.ENOTTY):
            return InvalidRequest(f"process {pid}: {words_of(error)}")
        return refuse_any(error)

    return refuse


def refuse_file(path: str) -> Callable[[frames.Error], ClocheError]:
    """For a request about a file."""

    def refuse(error: frames.Error) -> ClocheError:
        if error.code in (errno.EPROTONOSUPPORT, errno.EAGAIN) or not 0 < error.code <= LAST_ERRNO:
            return refuse_any(error)
        return FileError(f"{path!r}: {os.strerror(error.code)}", errno=error.code, path=path)

    return refuse


def refuse_port(port: int) -> Callable[[frames.Error], ClocheError]:
    """For a connection to a port."""

    def refuse(error: frames.Error) -> ClocheError:
        if error.code == errno.ECONNREFUSED:
            return NotFound(f"nothing listens on port {port} in the sandbox")
        return refuse_any(error)

    return refuse
