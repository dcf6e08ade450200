"""Setting things right after a crash: five hundred boxes that live, and five hundred that do not."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.report import print_bar, print_heading
from cloche import Sandbox
from cloche.engines.cgroups import BoxCgroup, find_hierarchies
from cloche.sandboxes.sweep import sweep

BOXES = 500


def measure() -> None:
    print_heading(
        "After a crash",
        f"  {BOXES} boxes whose maker is gone: all alive (each is looked at), then all killed (each is removed)",
    )
    before = os.environ.get("CLOCHE_HOME")
    with tempfile.TemporaryDirectory(prefix="cloche-bench-") as home:
        os.chmod(home, 0o711)
        os.environ["CLOCHE_HOME"] = home
        try:
            with ThreadPoolExecutor(4) as threads:
                made = list(threads.map(Sandbox.create, [None] * BOXES))
            print_bar("all alive", _time_sweep(0), 5, " s")
            for box in made:
                (BoxCgroup(box.id, find_hierarchies()).tree / "cgroup.kill").write_text("1")
            while any(box.is_running() for box in made):
                time.sleep(0.01)
            print_bar("all killed", _time_sweep(BOXES), 5, " s")
            assert not list(Path(home, "boxes").iterdir())
        finally:
            os.environ.pop("CLOCHE_HOME")
            if before is not None:
                os.environ["CLOCHE_HOME"] = before


def _time_sweep(expected: int) -> float:
    start = time.perf_counter()
    ended = sweep()
    assert len(ended) == expected, f"{len(ended)} of {expected} were ended"
    return time.perf_counter() - start
