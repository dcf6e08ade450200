"""What `make up` ends with: a first piece of code runs in a box, and everything about it is shown."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cloche import Sandbox, settings
from cloche.engines import engine_named
from cloche.errors import ClocheError, Unsupported

if TYPE_CHECKING:
    from cloche.models import CommandResult

CODE = """\
import os, socket, sys

print(f"Hello! Python {sys.version.split()[0]}, running as uid {os.getuid()}.")
print("Processes that I can see:", sum(name.isdigit() for name in os.listdir("/proc")))
print("Files in the home folder:", os.listdir())
print("Network interfaces:", *[name for _, name in socket.if_nameindex()])
"""
MARKS = {"kernel": "\u25cf", "keeper": "\u25d0", "no": "\u25cb"}
WIDEST = 110


def main() -> int:
    try:
        show_first_run()
    except Unsupported as error:
        program = Path(sys.executable).with_name("cloche")
        print(f"Cloche cannot run code here yet: {error}", file=sys.stderr)
        print(f"\nRun this, then make again:\n\n    sudo {program} setup {settings.user_name()}\n", file=sys.stderr)
        return 1
    except ClocheError as error:
        print(f"Cloche cannot run code here yet: {error}", file=sys.stderr)
        return 1
    return 0


def show_first_run() -> None:
    """A box, made, used twice and removed, and then another one; each part is timed."""
    start = time.perf_counter()
    with Sandbox.create("python") as box:
        made = time.perf_counter()
        first = box.commands.run([box.runtime.path, "-c", CODE])
        ran = time.perf_counter()
        box.commands.run(["true"])
        again = time.perf_counter()
        engine, runtime, limits = box.engine, box.runtime, box.limits
    gone = time.perf_counter()
    with Sandbox.create("python") as other:
        other.commands.run(["true"])
        other_ran = time.perf_counter()

    show_heading("This code")
    print(textwrap.indent(CODE, "  "), end="")
    show_heading(f"ran in a box of its own ({engine}, {runtime.name}) and printed")
    print(textwrap.indent(result_text(first), "  "), end="")
    show_heading("It took")
    show_time(made - start, "to make the first box, with what all later ones share")
    show_time(ran - made, f"to run the code ({first.cpu_seconds * 1000:.0f} ms of CPU time)")
    show_time(again - ran, "to run `true` in it")
    show_time(gone - again, "to remove it with all that was in it")
    show_time(other_ran - gone, "to make another box and run `true` in it")
    show_heading(f"It was held by  {MARKS['kernel']} the kernel  {MARKS['keeper']} the keeper  {MARKS['no']} nothing")
    show_abilities(engine)
    print(
        f"\n  Its limits: {limits.cpus:g} CPU, {limits.memory_mb} MB memory, {limits.disk_mb} MB disk, "
        f"{limits.pids} processes, {limits.timeout:g} s.\n  Next: docs/quickstart.md"
    )


def result_text(result: CommandResult) -> str:
    """What a person wants to see of it."""
    text = result.stdout + result.stderr
    if result.ok:
        return text
    return f"{text}(exit code {result.exit_code}{f': {result.message}' if result.message else ''})\n"


def show_abilities(engine: str) -> None:
    width = min(shutil.get_terminal_size().columns, WIDEST) - 20
    for promise, ability in engine_named(engine).abilities().items():
        reason = textwrap.shorten(ability.reason, width, placeholder=" \u2026")
        print(f"  {MARKS[ability.enforced]} {promise:15} {reason}")


def show_time(seconds: float, what: str) -> None:
    print(f"  {seconds * 1000:7.1f} ms  {what}")


def show_heading(text: str) -> None:
    is_plain = not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR"))
    print(f"\n{text}" if is_plain else f"\n\x1b[1m{text}\x1b[0m")


if __name__ == "__main__":
    sys.exit(main())
