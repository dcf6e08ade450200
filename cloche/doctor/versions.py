"""Which programs are here, in which version, and what the distribution says of them."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche.doctor.holes import HOLES, Package, find_ids, judge
from cloche.engines.machine import SYSTEM_PATH, find_program

if TYPE_CHECKING:
    from cloche.doctor.findings import Finding

DOCUMENTS: Final = Path("/usr/share/doc")
CHANGELOGS: Final = ("changelog.Debian.gz", "changelog.gz", "changelog.Debian")
MOST_OCTETS: Final = 4 << 20
"""Of a changelog, which begins with the latest."""
SECONDS: Final = 10.0


def look_at_versions() -> list[Finding]:
    """What is known of each program that is installed, the kernel among them."""
    findings: list[Finding] = []
    for program in HOLES:
        path = f"/boot/vmlinuz-{os.uname().release}" if program == "linux" else find_program(program)
        if path is None:
            continue
        version = os.uname().release if program == "linux" else _ask_version(path)
        findings += judge(program, version, find_package(path))
    return findings


def _ask_version(path: str) -> str:
    words = _run(path, "--version").partition("\n")[0].strip()
    number = re.search(r"v?\d+\.\d+\S*", words)
    return number[0].rstrip(",") if number else words


def find_package(path: str) -> Package | None:
    """The distribution's package with that file; None where it knows nothing of it."""
    if find_program("dpkg-query") is None:
        return None
    # On a machine with a merged /usr a package may have the file at either place.
    names = {path, os.path.realpath(path), os.path.realpath(path).removeprefix("/usr")}
    owner = _run("dpkg-query", "--search", *sorted(names)).partition(":")[0].strip()
    if not owner:
        return None
    version = _run("dpkg-query", "--show", "--showformat", "${Version}", owner).strip()
    return Package(owner, version, _read_named(DOCUMENTS / owner))


def _read_named(folder: Path) -> frozenset[str] | None:
    for name in CHANGELOGS:
        try:
            with gzip.open(folder / name) if name.endswith(".gz") else (folder / name).open("rb") as file:
                return frozenset(find_ids(file.read(MOST_OCTETS).decode("utf-8", "replace")))
        except OSError:
            continue
    return None


def _run(program: str, *words: str) -> str:
    """What it says; nothing where it fails, or does not end."""
    # Podman leaves folders behind even where it is asked for its version only.
    with tempfile.TemporaryDirectory(prefix="cloche-version-") as scratch:
        environment = {"PATH": SYSTEM_PATH, "LC_ALL": "C"}
        environment |= dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR"), scratch)
        try:
            done = subprocess.run(
                [program, *words],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                env=environment,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return done.stdout
