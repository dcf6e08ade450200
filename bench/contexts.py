"""Code in a context, against ipykernel through jupyter_client: the kernel on the host, ours in its box."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.report import Times, print_bar, print_heading, print_times, take_turns
from cloche import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

CACHE = Path(".cache/jupyter")
PACKAGES = ("ipykernel==7.4.0", "jupyter_client==8.10.0")
STARTS, PIECES, SHOWS = 10, 300, 10
# What is shown is made beforehand: the way of it is measured, and not its making.
PREPARE = "text = 'x' * 104_857\n"
SHOW = "for _ in range(100): display({'text/html': text}, raw=True)"


def measure() -> None:
    print_heading(
        "Code in a context",
        f"  starts {STARTS} times, 1+1 {PIECES} times, 10 MB in 100 displays {SHOWS} times; ipykernel runs on the host, "
        "without isolation",
    )
    theirs = {name: Times(f"ipykernel: {name}", values) for name, values in _measure_jupyter().items()}
    with Sandbox.create() as box:
        cold = take_turns({"cold": _call(box, [box.runtime.path, "-c", "print(2)"])}, rounds=STARTS, each=1)["cold"]
        ours = {name: Times(f"cloche: {name}", values) for name, values in _measure_ours(box).items()}
    print_times(Times(f"{box.runtime.name} -c 'print(2)' in the same box", cold.values))
    for name in ours:
        print_times(theirs[name])
        print_times(ours[name], theirs[name])
    print_bar("start to first result, x faster", _ratio(theirs, ours, "start"), 15, at_least=True)
    print_bar("start to first result, x the interpreter's cold start", ours["start"].median / cold.median, 2)
    print_bar("1+1, x faster", _ratio(theirs, ours, "1+1"), 3, at_least=True)
    print_bar("100 displays, x faster", _ratio(theirs, ours, "displays"), 1, at_least=True)


def _ratio(theirs: dict[str, Times], ours: dict[str, Times], name: str) -> float:
    return theirs[name].median / ours[name].median


def _call(box: Sandbox, command: list[str]) -> Callable[[], object]:
    return lambda: box.commands.run(command)


def _measure_ours(box: Sandbox) -> dict[str, list[float]]:
    starts: list[float] = []
    for _ in range(STARTS):
        begin = time.perf_counter()
        box.run_code("1+1").check()
        starts.append((time.perf_counter() - begin) * 1000)
        box.contexts.remove("python")
    box.run_code(PREPARE).check()
    pieces = take_turns({"1+1": lambda: box.run_code("1+1")}, rounds=1, each=PIECES)["1+1"].values
    shows = take_turns({"displays": lambda: _show(box)}, rounds=1, each=SHOWS)["displays"].values
    return {"start": starts, "1+1": pieces, "displays": shows}


def _show(box: Sandbox) -> None:
    assert len(box.run_code(SHOW).check().results) == 100


def _measure_jupyter() -> dict[str, list[float]]:
    python = CACHE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, stderr=subprocess.DEVNULL)
    script = Path(__file__).with_name("jupyter.py")
    command = [python, script, json.dumps([STARTS, PIECES, SHOWS, PREPARE, SHOW])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
