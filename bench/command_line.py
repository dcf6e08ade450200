"""The program `cloche`, from its start to its end, against an interpreter that starts and imports asyncio."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.report import print_bar, print_heading, print_times, take_turns

PROGRAM = Path(sys.executable).with_name("cloche")
# As it is installed: with byte code kept, for us and for what we are compared with.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure() -> None:
    print_heading(
        "cloche run -c 'print(1)', end to end",
        "  a fresh box, Python in it, its output, nothing left; medians of 4 rounds in turns, 10 each",
    )
    times = take_turns(
        {
            "host: python -c 'import asyncio; print(1)'": lambda: _call(
                sys.executable, "-c", "import asyncio; print(1)"
            ),
            "host: python -c 'print(1)'": lambda: _call(sys.executable, "-c", "print(1)"),
            "cloche --version": lambda: _call(PROGRAM, "--version"),
            "cloche run -c 'print(1)'": lambda: _call(PROGRAM, "run", "-c", "print(1)"),
        },
        rounds=4,
        each=10,
    )
    base, *_, run = times.values()
    for one in times.values():
        print_times(one, base)
    print_bar("cloche run, x python with asyncio", run.median / base.median, 2.5)


def _call(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
