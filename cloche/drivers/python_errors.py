"""What code has raised: as Python shows it, without the driver's frames."""

from __future__ import annotations

import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST = 1 << 16
DEEPEST = 5000


def describe(error: BaseException) -> tuple[str, str, str, int]:
    """Its name, its value, its traceback, and the exit status that it would end a program with."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))
    name = type(error).__name__
    try:
        value = str(error)
    except Exception as second:
        value = "<its str() raised %s>" % type(second).__name__
    try:
        trace = format_trace(error)
    except Exception:
        trace = "%s: %s\n" % (name, value)
    return name, shorten(value), shorten(trace), exit_status(error)


def format_trace(error: BaseException) -> str:
    whole = traceback.TracebackException(type(error), error, error.__traceback__, limit=limit_of(error))
    pending: list[Any] = [whole]
    while pending:
        one = pending.pop()
        one.stack[:] = visible(one.stack)
        links = (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ()))
        pending += [link for link in links if link]
    if whole.stack or whole.__cause__ or whole.__context__:
        return "".join(whole.format())
    return "".join(whole.format_exception_only())


def visible(stack: list[Any]) -> list[Any]:
    """Neither the driver's frames nor those of a loop that it ran the code in."""
    frames = [frame for frame in stack if not frame.filename.startswith("<cloche ")]
    own = [number for number, frame in enumerate(frames) if frame.filename.startswith("<cell ")]
    return frames[own[0] if own else 0 :]


def limit_of(error: BaseException) -> int | None:
    """Of very deep ones the end: each frame's line is looked up, which takes its time."""
    depth, tb = 0, error.__traceback__
    while tb:
        depth, tb = depth + 1, tb.tb_next
    return -1000 if depth > DEEPEST else None


def exit_status(error: BaseException) -> int:
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


def shorten(text: str) -> str:
    """Without its middle, where it is very long."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return "%s\n… %d characters are left out …\n%s" % (text[:half], len(text) - LONGEST, text[-half:])
