"""What an idle box takes of the machine's memory, the kernel's share included."""

from __future__ import annotations

import time
from pathlib import Path

from bench.report import print_bar, print_heading
from cloche import Sandbox
from cloche.engines.cgroups import BoxCgroup, find_hierarchies

BOXES = 60
KERNEL = ("Slab", "KernelStack", "PageTables", "Percpu", "VmallocUsed")


def measure() -> None:
    print_heading(
        "Memory of an idle box",
        f"  the keeper's share (PSS), and the kernel's: {', '.join(KERNEL)} of /proc/meminfo, grown by {BOXES} boxes",
    )
    Sandbox.create().kill()
    before = _kernel_kib()
    boxes = [Sandbox.create() for _ in range(BOXES)]
    kernel = (_kernel_kib() - before) / BOXES
    keepers = sum(_pss_kib(box.id) for box in boxes) / BOXES
    for box in boxes:
        box.kill()
    print(f"  keeper {keepers:.0f} KiB, kernel {kernel:.0f} KiB")
    print_bar("one idle box", (keepers + kernel) / 1024, 1, " MiB")


def _kernel_kib() -> int:
    """The least of some readings: other programs come and go."""
    readings: list[int] = []
    for _ in range(10):
        lines = [line.split() for line in Path("/proc/meminfo").read_text().splitlines()]
        readings.append(sum(int(line[1]) for line in lines if line[0].rstrip(":") in KERNEL))
        time.sleep(0.05)
    return min(readings)


def _pss_kib(id: str) -> int:
    total = 0
    for process in (BoxCgroup(id, find_hierarchies()).tree / "cgroup.procs").read_text().split():
        lines = Path("/proc", process, "smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total
