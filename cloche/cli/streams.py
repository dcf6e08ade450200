"""Standard input, output and error, whatever our caller gave us of them."""

from __future__ import annotations

import io
import os
import sys
from typing import Final

MISSING: Final = (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
"""How /dev/null stands in for each: an answer that nobody would get can't be written, which is an error."""


def complete_streams() -> None:
    """Those that are closed get a stand-in, before another file takes their number; what can't be encoded is escaped."""
    for number, (name, mode, access) in enumerate(MISSING):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one. What we start may have it as well.
            os.set_inheritable(os.open(os.devnull, access), True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
