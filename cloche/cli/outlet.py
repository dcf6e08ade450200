"""A sandbox's output on our own: as it is for programs, filtered where a person looks at it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Literal

from cloche.errors import ClocheError, InvalidRequest

if TYPE_CHECKING:
    import argparse

    from cloche.cli.terminal import TerminalFilter
    from cloche.client._sync.runs import Run
    from cloche.models import LimitName, Limits

PIECE: Final = 1 << 16
MOST_COLLECTED: Final = 16 << 20
"""Octets of output that JSON holds at most."""


class Outlet:
    """Our standard output or standard error, for octets of a sandbox."""

    def __init__(self, name: Literal["stdout", "stderr"], *, raw: bool = False, screen: bool = False) -> None:
        file = getattr(sys, name)
        file.flush()
        self._descriptor = file.fileno()
        self._filter = None if raw or not os.isatty(self._descriptor) else _make_filter(screen=screen)

    def write(self, data: bytes) -> None:
        """All of it, or what of it a terminal may be shown."""
        self._put(data if self._filter is None else self._filter.feed(data).encode())

    def finish(self) -> None:
        """Nothing more comes."""
        if self._filter is not None:
            self._put(self._filter.finish().encode())

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                _wait_for(self._descriptor)


def _make_filter(*, screen: bool) -> TerminalFilter:
    from cloche.cli.terminal import TerminalFilter

    return TerminalFilter(screen=screen)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """What becomes of the output."""
    parser.add_argument(
        "--raw", action="store_true", help="on a terminal, let control sequences through that are filtered out else"
    )


def follow(run: Run, limits: Limits, *, raw: bool = False, stdin: bool = False) -> int:
    """Passes on what a command writes, and with `stdin` what we are given; tells of a limit that it ran into.

    Gives its exit code.
    """
    outlets = {"stdout": Outlet("stdout", raw=raw), "stderr": Outlet("stderr", raw=raw)}
    if stdin:
        _start_pump(run)
    for chunk in run:
        if chunk.stream == "gap":
            _tell_limit("output_bytes", limits, chunk.size)
        else:
            outlets[chunk.stream].write(chunk.data)
    for outlet in outlets.values():
        outlet.finish()
    assert run.result, "a run that has been followed to its end has a result"
    if run.result.limit_hit not in (None, "output_bytes"):
        _tell_limit(run.result.limit_hit, limits)
    return run.result.exit_code


def _tell_limit(hit: LimitName, limits: Limits, dropped: int = 0) -> None:
    from cloche.cli.terminal import say

    say(_describe_limit(hit, limits, dropped))


def _describe_limit(hit: LimitName, limits: Limits, dropped: int) -> str:
    from cloche.cli.options import FLAGS
    from cloche.client.results import describe_limit

    return describe_limit(hit, limits, dropped, FLAGS)


def limits_of(limits: Limits, args: argparse.Namespace) -> Limits:
    """Those of the sandbox, with what is said for one execution."""
    from dataclasses import replace

    own = {name: getattr(args, name) for name in ("timeout", "output_bytes")}
    return replace(limits, **{name: value for name, value in own.items() if value is not None})


def refuse_too_much(output_bytes: int) -> None:
    """JSON is put together in memory, several times the output's size: code of others must not decide how much it is.

    Raises: InvalidRequest.
    """
    if not 0 < output_bytes <= MOST_COLLECTED:
        found = f"the output may have {output_bytes} bytes" if output_bytes else "the output is not limited"
        raise InvalidRequest(
            f"{found}, and JSON holds all of it at once; set --output to {MOST_COLLECTED} at most, or leave out --json"
        )


def collect(run: Run, limits: Limits, *, stdin: bool = False) -> dict[str, Any]:
    """All of what it did, for programs; with `stdin` it gets what we are given."""
    from dataclasses import asdict

    from cloche.client.output import Output

    if stdin:
        _start_pump(run)
    result = run.collect(Output(limits.output_bytes))
    hit = result.limit_hit
    return {**asdict(result), "message": _describe_limit(hit, limits, result.output_dropped) if hit else None}


def _start_pump(run: Run) -> None:
    # Nothing waits for it: it may be reading when all is over.
    Thread(target=_pump, args=(run,), daemon=True).start()


def _pump(run: Run) -> None:
    """Our standard input to the command's. That the command has ended is told by others."""
    with suppress(ClocheError):
        while data := _read_input():
            run.send_stdin(data)
        run.close_stdin()


def _read_input() -> bytes:
    # Without one, or in the background of a terminal, there is nothing to read.
    with suppress(OSError):
        return os.read(0, PIECE)
    return b""


def _wait_for(descriptor: int) -> None:
    import select

    select.select([], [descriptor], [])
