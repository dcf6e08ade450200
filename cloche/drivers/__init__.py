"""What runs in a context: per language a driver's source, handed to an interpreter that a loader makes ready for it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

PYTHON_LOADER = """\
import builtins, os
n = min(os.sysconf("SC_OPEN_MAX"), 1024) - 1
os.dup2(0, n, False)
f = open(n, "rb", 65536)
p = [f.read(int(s)) for s in f.readline().split()]
g = {"__name__": "cloche", "__builtins__": dict(vars(builtins))}
exec(compile(p[0], "<cloche python>", "exec"), g)
g["main"](f, p)
"""
"""Requests move to a high number at once; the driver's built-in names are its own, whatever code does to them."""

PYTHON_PARTS = tuple(f"python{part}.py" for part in ("", "_errors", "_tasks", "_magics", "_display", "_charts"))


@dataclass(frozen=True, slots=True)
class Language:
    """`loader` is what the interpreter is started with, `parts` the files that follow, the driver's core first."""

    loader: tuple[str, ...]
    parts: tuple[str, ...]


LANGUAGES = {
    "python": Language(("-c", PYTHON_LOADER), PYTHON_PARTS),
}


def first_octets(language: Language) -> bytes:
    """What a loader reads before the first request: a line of lengths, then the parts."""
    sources = [files(__name__).joinpath(part).read_bytes() for part in language.parts]
    return b" ".join(b"%d" % len(source) for source in sources) + b"\n" + b"".join(sources)
