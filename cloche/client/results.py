"""From the keeper's EXIT and the kernel's counters to a result that names the limit that was hit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.errors import ProtocolError
from cloche.link import frames
from cloche.models import CommandResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloche.engines.base import Events
    from cloche.models import LimitName, Limits

_LAST_SIGNAL: Final = 64


def make_result(
    exit: frames.Exit, *, pid: int, streams: tuple[str, str], limits: Limits, before: Events, after: Events
) -> CommandResult:
    """The result; `limits` are those of this execution.

    Raises: ProtocolError.
    """
    if not -1 <= exit.exit_code <= 255 or exit.signal > _LAST_SIGNAL or (exit.exit_code < 0) != (exit.signal > 0):
        raise ProtocolError(f"EXIT has exit code {exit.exit_code} and signal {exit.signal}, which can't be")
    hit = find_limit(exit, before, after)
    return CommandResult(
        stdout=streams[0],
        stderr=streams[1],
        exit_code=128 + exit.signal if exit.signal else exit.exit_code,
        signal=exit.signal or None,
        pid=pid,
        wall_seconds=exit.wall_ns / 1e9,
        cpu_seconds=(exit.user_us + exit.system_us) / 1e6,
        peak_memory_bytes=exit.peak_bytes,
        limit_hit=hit,
        message=describe_limit(hit, limits, exit.dropped) if hit else None,
        output_dropped=exit.dropped,
        left_running=bool(exit.flags & frames.EXIT_LEFT_RUNNING),
    )


def find_limit(exit: frames.Exit, before: Events, after: Events) -> LimitName | None:
    """The limit that ended it; cut output only where nothing else went wrong."""
    if exit.flags & frames.EXIT_TIME_LIMIT:
        return "timeout"
    if exit.exit_code:
        if after.oom_kills > before.oom_kills:
            return "memory_mb"
        if exit.flags & frames.EXIT_DISK_FULL:
            return "disk_mb"
        if exit.flags & frames.EXIT_INODES_FULL:
            return "inodes"
        if after.pids_refused > before.pids_refused:
            return "pids"
    return "output_bytes" if exit.dropped else None


def describe_limit(hit: LimitName, limits: Limits, dropped: int = 0, names: Mapping[str, str] | None = None) -> str:
    """Which limit it was, and what to do; `names` says what the limits are called where that is not as here."""
    remedy = f"raise {(names or {}).get(hit, hit)}"
    match hit:
        case "timeout":
            return f"out of time: the limit is {limits.timeout:g} s; {remedy}"
        case "memory_mb":
            return f"out of memory: the limit is {limits.memory_mb} MB; {remedy}"
        case "disk_mb":
            return f"out of disk: the limit is {limits.disk_mb} MB; {remedy}"
        case "inodes":
            return f"out of inodes: the limit is {limits.inodes} files and folders; {remedy}"
        case "pids":
            return f"out of processes: the limit is {limits.pids}; {remedy}"
        case "output_bytes":
            return (
                f"too much output: the limit is {limits.output_bytes} bytes, {dropped} in the middle are left out; "
                f"{remedy}"
            )
