"""Output and files through the library."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from typing import TYPE_CHECKING

from bench.report import print_bar, print_heading
from cloche import AsyncSandbox, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

OUTPUT = 200_000_000
FILE = 10_000_000
TURNS = 5


def measure() -> None:
    print_heading(
        "Throughput",
        f"  `head -c {OUTPUT} /dev/zero` captured; a file of {FILE // 10**6} MB written and read; the best of {TURNS}",
    )
    plain = _best(_read_plain_pipe, OUTPUT)
    print(f"  a plain pipe read by Python: {plain:.0f} MB/s")
    bar = min(500.0, plain / 2)
    loop = asyncio.new_event_loop()
    try:
        with Sandbox.create(output_bytes=0, memory_mb=1024) as box:
            other = loop.run_until_complete(AsyncSandbox.connect(box.id))
            command = ["head", "-c", str(OUTPUT), "/dev/zero"]
            print_bar("output, sync", _best(lambda: box.commands.run(command), OUTPUT), bar, " MB/s", at_least=True)
            print_bar(
                "output, async",
                _best(lambda: loop.run_until_complete(other.commands.run(command)), OUTPUT),
                bar,
                " MB/s",
                at_least=True,
            )
            data = os.urandom(FILE)
            written = _best(lambda: box.files.write("/tmp/file", data), FILE)
            print_bar("a file written", written, 500, " MB/s", at_least=True)
            assert box.files.read("/tmp/file", format="bytes") == data
            read = _best(lambda: box.files.read("/tmp/file", format="bytes"), FILE)
            print_bar("a file read", read, 500, " MB/s", at_least=True)
    finally:
        loop.close()


def _best(run: Callable[[], object], octets: int) -> float:
    fastest = float("inf")
    for _ in range(TURNS):
        start = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - start)
    return octets / fastest / 1e6


def _read_plain_pipe() -> None:
    with subprocess.Popen(["head", "-c", str(OUTPUT), "/dev/zero"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read()
