"""A command in a box that is there already, against fork + exec on the host."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bench.floor import run_shell, run_tiny, run_true, tiny_program
from bench.report import print_bar, print_heading, print_times, take_turns
from cloche import AsyncSandbox, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable


def measure() -> None:
    print_heading(
        "A command in a box that exists",
        "  sync library against subprocess.run with captured output; medians of 8 rounds in turns, 50 each",
    )
    loop = asyncio.new_event_loop()
    try:
        with Sandbox.create() as box:
            other = loop.run_until_complete(AsyncSandbox.connect(box.id))
            box.files.write("/tmp/tiny", tiny_program().read_bytes())
            box.commands.run("chmod +x /tmp/tiny")
            runs: dict[str, Callable[[], object]] = {
                "host: fork + exec of an empty static program": run_tiny,
                "host: fork + exec of true": run_true,
                "host: the shell, running true": run_shell,
                "box: the same empty program": lambda: box.commands.run(["/tmp/tiny"]),
                "box: true, as argv": lambda: box.commands.run(["true"]),
                "box: true, through a shell": lambda: box.commands.run("true;"),
                "box: true, async": lambda: loop.run_until_complete(other.commands.run(["true"])),
            }
            times = take_turns(runs, rounds=8, each=50)
    finally:
        loop.close()
    tiny, true, host_shell, same, argv, shell, concurrent = times.values()
    for one in times.values():
        print_times(one, tiny)
    print_bar("true as argv, median, x empty program on the host", argv.median / tiny.median, 1.5)
    print_bar("true as argv, p95, x empty program on the host", argv.at(0.95) / tiny.at(0.95), 3)
    print_bar("true as argv, median, x true on the host", argv.median / true.median, 1.5)
    print_bar("empty program, median, x the same on the host", same.median / tiny.median, 1.5)
    print_bar("async, more than sync", concurrent.median - argv.median, 0.5, " ms")
    extra = (shell.median - argv.median) - (host_shell.median - true.median)
    print_bar("through a shell, more than argv, beyond what the shell itself takes", extra, 0.5, " ms")
