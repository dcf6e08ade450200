"""Makes cloche/client/_sync from cloche/client/_async: the same words without the waiting.

`python tools/generate_sync.py` writes, `--check` only tells (exit code 1) whether something is stale.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "cloche" / "client"
FIRST_LINE = "# Generated from ../_async by `python tools/generate_sync.py`: change it there.\n"
RULES = [
    (
        r"\bfrom cloche\.link\.async_connection import AsyncConnection\b",
        "from cloche.link.connection import Connection",
    ),
    (r"\bcloche\.client\._async\b", "cloche.client._sync"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bin_thread\b", "in_place"),
    (r"\bpause\b", "pause_in_place"),
    (r"\bAsync([A-Z]\w+)", r"\1"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bfor asyncio, and generated from it `Sandbox`", "generated from `AsyncSandbox`"),
    (r"for asyncio\b", "for threads and plain programs"),
    (r"`async with`", "`with`"),
    (r"`Sandbox` generated", "`Sandbox`, generated"),
]


def generate(source: str) -> str:
    """The blocking twin of a file."""
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return _ruff("format", _ruff("check --select=I,TC,C416 --fix-only --unsafe-fixes", FIRST_LINE + source))


def _ruff(command: str, source: str) -> str:
    words = [sys.executable, "-m", "ruff", *command.split(), "--quiet", "--stdin-filename", CLIENT / "_sync/x.py", "-"]
    return subprocess.run(words, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    """Write, or check."""
    wanted = {path.name: generate(path.read_text(encoding="utf-8")) for path in CLIENT.glob("_async/*.py")}
    target = CLIENT / "_sync"
    found = {path.name: path.read_text(encoding="utf-8") for path in target.glob("*.py")}
    stale = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if "--check" in sys.argv:
        for name in stale:
            print(f"cloche/client/_sync/{name} is stale; run: python tools/generate_sync.py", file=sys.stderr)
        return 1 if stale else 0
    target.mkdir(exist_ok=True)
    for name in stale:
        if name in wanted:
            (target / name).write_text(wanted[name], encoding="utf-8")
        else:
            (target / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
