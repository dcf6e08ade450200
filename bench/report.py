"""Times and tables."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Times:
    """The milliseconds that one thing took, again and again."""

    name: str
    values: list[float]

    def at(self, share: float) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    @property
    def median(self) -> float:
        return self.at(0.5)


def take_turns(runs: dict[str, Callable[[], object]], *, rounds: int, each: int, warm_up: int = 3) -> dict[str, Times]:
    """Time all of them in turns, so that a busy moment of the machine falls on each alike."""
    times = {name: Times(name, []) for name in runs}
    for run in runs.values():
        for _ in range(warm_up):
            run()
    for _ in range(rounds):
        for name, run in runs.items():
            for _ in range(each):
                start = time.perf_counter()
                run()
                times[name].values.append((time.perf_counter() - start) * 1000)
    return times


def print_machine() -> None:
    load = os.getloadavg()[0]
    print(f"Linux {platform.release()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}")


def print_heading(title: str, how: str) -> None:
    print(f"\n{title}\n{how}")


def print_times(times: Times, base: Times | None = None) -> None:
    line = f"  {times.name:<44} {times.median:9.2f} ms   p95 {times.at(0.95):9.2f} ms"
    if base is not None:
        line += f"   x {times.median / base.median:6.2f}   p95 x {times.at(0.95) / base.at(0.95):6.2f}"
    print(line)


def print_bar(what: str, found: float, bar: float, unit: str = "", *, at_least: bool = False) -> None:
    kept = found >= bar if at_least else found <= bar
    sign = ">=" if at_least else "<="
    print(f"  {'met' if kept else 'MISSED':<7} {what}: {found:.2f}{unit} ({sign} {bar:g}{unit})")
