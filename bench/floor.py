"""What nothing can be faster than: plain fork + exec on the host of a program of no size."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCE = "int main(void) { return 0; }\n"


@cache
def tiny_program() -> Path:
    """A static C program that does nothing."""
    folder = Path(tempfile.mkdtemp(prefix="cloche-bench-"))
    (folder / "tiny.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-static", "-o", folder / "tiny", folder / "tiny.c"], check=True)
    return folder / "tiny"


def run_tiny() -> None:
    subprocess.run([tiny_program()], check=False, capture_output=True)


def run_true() -> None:
    subprocess.run(["/usr/bin/true"], check=False, capture_output=True)


def run_shell() -> None:
    subprocess.run(["/bin/bash", "-c", "true;"], check=False, capture_output=True)
