"""Ends from outside: the first leaves time to clean up, and no other one disturbs that."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Generator

ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def handle_ends() -> None:
    """From now on each of them leaves nothing half done. Those that our caller ignores stay ignored."""
    for number in ENDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def _end(number: int, frame: object) -> NoReturn:
    del frame
    # Once is enough: a box that is being removed is to be removed. Blocked, they also spare what is started for that.
    # A handler stays, for those that came in the same moment: Python complains of one that is ignored by then.
    for each in ENDS:
        signal.signal(each, _pass_over)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _pass_over(number: int, frame: object) -> None:
    """An end that comes behind the first one."""


@contextmanager
def repeated_interrupts() -> Generator[None]:
    """For a console: within it Ctrl-C raises KeyboardInterrupt each time, as it means the piece of code that runs."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        # Another end may have come, and then there is to be no more of them.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
