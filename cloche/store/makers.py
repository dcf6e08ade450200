"""Which process that was: a number alone may be another process by now, or another boot's."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


@cache
def boot() -> str:
    """Another one after each start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_time(pid: int) -> str | None:
    """When it started, in clock ticks since boot: with the number it names a process for good; None if it ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def this_process() -> str:
    """Its name for good, in this boot."""
    return f"{os.getpid()}:{start_time(os.getpid())}"


def is_alive(maker: str) -> bool:
    """True while the process of that name runs; the boot is the same, or the caller knows that it is not."""
    pid, _, started = maker.partition(":")
    return start_time(int(pid)) == started
