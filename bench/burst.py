"""Twenty boxes at the same moment."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from bench.cold import make_and_ask
from bench.report import Times, print_bar, print_heading, print_times
from cloche import Sandbox

BOXES, ROUNDS = 20, 4


def measure() -> None:
    print_heading(
        f"{BOXES} boxes at once",
        f"  {BOXES} threads make a box and get an answer; wall time until the last one, {ROUNDS} rounds",
    )
    single, burst = Times("one box", []), Times(f"{BOXES} boxes", [])
    with ThreadPoolExecutor(BOXES) as threads:
        for turn in range(ROUNDS + 1):
            alone = [_time_one() for _ in range(5)]
            start = time.perf_counter()
            boxes = list(threads.map(make_and_ask, ["embedded"] * BOXES))
            taken = (time.perf_counter() - start) * 1000
            list(threads.map(Sandbox.kill, boxes))
            if turn:
                single.values.extend(alone)
                burst.values.append(taken)
    print_times(single)
    print_times(burst, single)
    print_bar(f"{BOXES} at once, x one", burst.median / single.median, 20)


def _time_one() -> float:
    start = time.perf_counter()
    box = make_and_ask("embedded")
    taken = (time.perf_counter() - start) * 1000
    box.kill()
    return taken
