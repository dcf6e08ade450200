"""What runs in a context: per language a driver's source, handed to an interpreter that a loader makes ready for it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

PYTHON_LOADER: Final = """\
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

PYTHON_PARTS: Final = tuple(f"python{part}.py" for part in ("", "_errors", "_tasks", "_magics", "_display", "_charts"))

BASH_LOADER: Final = (
    'trap "" INT; read -r n m && LC_ALL=C read -rN "$n" __cloche_source && LC_ALL=C read -rN "$m" __cloche_seldom && '
    'unset n m && eval "$__cloche_source" && eval "$__cloche_loop"'
)
NODE_LOADER: Final = (
    '{const fs=require("fs"),byte=Buffer.alloc(1);let line="";'
    "while(fs.readSync(0,byte)&&byte[0]!==10)line+=byte;"
    'for(const size of line.split(" ")){const part=Buffer.alloc(+size);'
    "for(let at=0,got;at<part.length;at+=got)if(!(got=fs.readSync(0,part,at,part.length-at)))process.exit(1);"
    'module._compile(String(part),process.cwd()+"/cloche-driver.js")}}'
)


@dataclass(frozen=True, slots=True)
class Language:
    """How a driver is started."""

    argv: tuple[str, ...]
    """What stands behind the interpreter's path: a loader, which reads the parts from its input."""
    parts: tuple[str, ...]
    """The driver's files beside this one, in the order in which the loader reads them."""


LANGUAGES: Final = {
    "python": Language(("-c", PYTHON_LOADER), PYTHON_PARTS),
    "javascript": Language(("--expose-internals", "-e", NODE_LOADER), ("javascript_rewriting.js", "javascript.js")),
    "bash": Language(("--norc", "--noprofile", "-c", BASH_LOADER, "bash"), ("bash.sh", "bash_seldom.sh")),
}


def first_octets(language: Language) -> bytes:
    """What a loader reads before the first request: a line of lengths, then the parts."""
    sources = [files(__name__).joinpath(part).read_bytes() for part in language.parts]
    return b" ".join(b"%d" % len(source) for source in sources) + b"\n" + b"".join(sources)
