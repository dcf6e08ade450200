"""The kernel's counters of the limits that a box ran into, held open: to open them takes longer than to read them."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from cloche.engines.base import Events

if TYPE_CHECKING:
    from pathlib import Path

MOST = 4096


class CounterFile:
    """One number in a file of `name number` lines; 0 where the file is gone before it was opened."""

    def __init__(self, path: Path, name: str) -> None:
        self._name = f"{name} ".encode()
        self._last = 0
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._descriptor = -1
        else:
            weakref.finalize(self, os.close, self._descriptor)

    def read(self) -> int:
        """The count; of a cgroup that has been removed the last that was seen."""
        if self._descriptor >= 0:
            try:
                text = os.pread(self._descriptor, MOST, 0)
            except OSError:
                return self._last
            self._last = self._find(text)
        return self._last

    def _find(self, text: bytes) -> int:
        start = 0 if text.startswith(self._name) else text.find(b"\n" + self._name) + 1
        if not start and not text.startswith(self._name):
            return 0
        return int(text[start + len(self._name) :].split(b"\n", 1)[0])


class CgroupCounters:
    """Out of memory, and processes refused; None is what nobody counts."""

    def __init__(self, memory: CounterFile | None, pids: CounterFile | None) -> None:
        self._memory = memory
        self._pids = pids

    def read(self) -> Events:
        return Events(
            oom_kills=self._memory.read() if self._memory else 0,
            pids_refused=self._pids.read() if self._pids else 0,
        )


class NoCounters:
    """Of an engine that has no such limits."""

    def read(self) -> Events:
        return Events()
