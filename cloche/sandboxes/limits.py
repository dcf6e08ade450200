"""The bounds of every limit, as data, and the check of what was asked for."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloche.errors import InvalidRequest
from cloche.models import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

YEAR = 365 * 86400.0
CENTURY = 100 * YEAR
LEAST_SECONDS = 0.1
INODES_PER_MB = 256


@dataclass(frozen=True, slots=True)
class Bound:
    """The numbers that a limit may have."""

    least: float
    most: Callable[[], float]
    unit: str
    why: str
    """What the upper bound is."""
    zero_means_none: bool = False
    whole: bool = True


def _cores() -> float:
    return len(os.sched_getaffinity(0))


def _memory_mb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def _disk_mb() -> float:
    from cloche import settings

    disk = os.statvfs(settings.home())
    return disk.f_blocks * disk.f_frsize >> 20


def _processes() -> float:
    return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))


BOUNDS: Final[Mapping[str, Bound]] = {
    "cpus": Bound(0.01, _cores, "cores", "this machine has no more", whole=False),
    "memory_mb": Bound(16, _memory_mb, "MB", "this machine has no more"),
    "disk_mb": Bound(8, _disk_mb, "MB", "the disk of CLOCHE_HOME has no more"),
    "inodes": Bound(64, lambda: 1 << 31, "files", "a file system has no more"),
    "pids": Bound(4, _processes, "processes", "this machine has no more"),
    "timeout": Bound(0.001, lambda: YEAR, "seconds", "a year", zero_means_none=True, whole=False),
    "output_bytes": Bound(1024, lambda: 1 << 40, "octets", "1 TiB", zero_means_none=True),
}


def choose_limits(asked: Mapping[str, Any]) -> Limits:
    """The limits: those asked for, checked, and the defaults.

    Raises: InvalidRequest.
    """
    values = _fitting_defaults() | {name: check_limit(name, value) for name, value in asked.items()}
    if "inodes" not in asked:
        # Each takes 256 octets of the disk.
        values["inodes"] = min(values["inodes"], values["disk_mb"] * INODES_PER_MB)
    return Limits(**values)


def check_limit(name: str, value: Any) -> Any:
    """The value, where it makes sense.

    Raises: InvalidRequest.
    """
    bound = BOUNDS[name]
    kinds = int if bound.whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        expected = "a whole number" if bound.whole else "a number"
        raise InvalidRequest(f"{name} is {value!r}; {expected} of {bound.unit} was expected", parameter=name)
    if value == 0 and bound.zero_means_none:
        return value
    none = ", or 0 for no limit" if bound.zero_means_none else ""
    if value < bound.least:
        raise InvalidRequest(
            f"{name} is {value!r}; at least {bound.least:g} {bound.unit} are needed{none}", parameter=name
        )
    most = bound.most()
    if value > most:
        raise InvalidRequest(
            f"{name} is {value!r}; at most {most:.15g} {bound.unit} are possible: {bound.why}{none}", parameter=name
        )
    return value


def check_seconds(name: str, value: Any) -> float:
    """How long a sandbox lives; 0 means without end.

    Raises: InvalidRequest.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if is_number and (value == 0 or LEAST_SECONDS <= value <= CENTURY):
        return float(value)
    raise InvalidRequest(
        f"{name} is {value!r}; {LEAST_SECONDS:g} to {CENTURY:.0f} seconds were expected, or 0 for no limit",
        parameter=name,
    )


def _fitting_defaults() -> dict[str, Any]:
    """The defaults, made smaller on a machine that has less."""
    defaults = Limits()
    values = {name: getattr(defaults, name) for name in BOUNDS}
    for name in ("memory_mb", "disk_mb"):
        values[name] = min(values[name], int(BOUNDS[name].most()))
    return values
