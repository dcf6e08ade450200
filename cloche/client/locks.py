"""One at a time, among all programs of this machine."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING, Final

from cloche.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path

WAIT_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.005


def lock_file(path: Path) -> int:
    """A descriptor; whoever closes it gives the lock back, and so does the end of the process.

    Raises: SandboxError where somebody else keeps it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise SandboxError(f"another program has held {str(path)!r} for {WAIT_SECONDS:g} s; end it") from None
            time.sleep(PAUSE_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return descriptor
