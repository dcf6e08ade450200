"""Points where a test ends this process as `kill -9` does: CLOCHE_FAULT names one of them."""

from __future__ import annotations

import os
import signal
from typing import Final

POINTS: Final = (
    "create.intended",
    "create.folder",
    "create.leased",
    "create.disk",
    "create.planned",
    "create.launched",
    "create.verified",
    "create.recorded",
    "create.running",
    "delete.intended",
    "delete.killed",
    "delete.cgroups",
    "delete.released",
    "delete.engine",
    "delete.folder",
    "delete.ended",
)
LAUNCHER: Final = "launcher."
"""With a number behind it: the launcher ends the process that started it, at its step of that number."""


def point(name: str) -> None:
    """Dies here, where the test says so."""
    if os.environ.get("CLOCHE_FAULT") == name:
        os.kill(os.getpid(), signal.SIGKILL)


def launcher_options() -> list[str]:
    """What the launcher is to be told."""
    wanted = os.environ.get("CLOCHE_FAULT", "")
    return ["--kill-at", wanted.removeprefix(LAUNCHER)] if wanted.startswith(LAUNCHER) else []
