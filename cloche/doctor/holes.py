"""Versions with known holes, as data, and what a version that was found means.

A version counts as mended where it is at or above the one that its own series was mended in, or of a later series than
all of them. A distribution mends without changing the number: of its packages the changelog is asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cloche.doctor.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

Version = tuple[int, ...]


class Package(NamedTuple):
    """What the distribution knows of a program."""

    name: str
    version: str
    named: frozenset[str] | None
    """The CVEs that its changelog names; None where there is no changelog."""


class Hole(NamedTuple):
    """Something that is mended in later versions."""

    ids: str
    what: str
    mended: tuple[str, ...]
    """The first good version of each series that has one."""
    since: str = "0"
    """The first bad version."""
    is_ours: bool = True
    """False where Cloche does not use what the hole is in: then it is only noted."""


HOLES: Final[Mapping[str, tuple[Hole, ...]]] = {
    "linux": (
        Hole(
            "CVE-2026-31431 (Copy Fail)",
            "who may open an AF_ALG socket writes to files that they can only read; a box's filter refuses such sockets",
            ("6.12.85", "6.18.22", "6.19.12", "7.0"),
        ),
        Hole(
            "CVE-2026-43284 (Dirty Frag)",
            "who may set up IPsec writes to files that they can only read; in a box nobody may",
            ("6.6.138", "6.12.87", "6.18.28", "7.0.5"),
        ),
        Hole(
            "CVE-2026-43500 (Dirty Frag)",
            "who may open an RxRPC socket writes to files that they can only read; a box's filter refuses such sockets",
            ("6.18.29", "7.0.6"),
        ),
    ),
    "runc": (
        Hole("CVE-2024-21626", "a folder of this machine stays open in the box", ("1.1.12",)),
        Hole(
            "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881",
            "links swapped in while a box is set up lead its mounts and writes to this machine",
            ("1.2.8", "1.3.3", "1.4.0-rc.3"),
        ),
        Hole(
            "CVE-2026-41579",
            "an image whose /dev is a link has runc make a few links outside of it; in a box /dev is a folder of its own",
            ("1.3.6", "1.4.3", "1.5.0"),
            is_ours=False,
        ),
    ),
    "crun": (
        Hole(
            "CVE-2025-24965",
            "an image leads the krun handler out of its root file system; Cloche never uses that handler",
            ("1.20",),
            is_ours=False,
        ),
        Hole(
            "CVE-2026-30892",
            "`crun exec --user 1` runs as root; Cloche never calls it",
            ("1.27",),
            since="1.19",
            is_ours=False,
        ),
    ),
    # No engine of this version uses these.
    "docker": (
        Hole(
            "CVE-2026-41567, CVE-2026-41568, CVE-2026-42306",
            "`docker cp` lets a container write to this machine",
            ("29.5.1",),
            is_ours=False,
        ),
    ),
    "podman": (
        Hole(
            "CVE-2025-9566",
            "`podman kube play` lets a volume overwrite files of this machine",
            ("5.6.1",),
            since="4.0.0",
            is_ours=False,
        ),
        Hole(
            "CVE-2026-55686",
            "a WORKDIR that is a link has podman make folders on this machine",
            ("5.7.1",),
            is_ours=False,
        ),
    ),
    "containerd": (
        Hole(
            "CVE-2026-53488",
            "a label of an image becomes a command of this machine's root",
            ("1.7.33", "2.1.9", "2.2.5", "2.3.2"),
            is_ours=False,
        ),
    ),
}


BY_COMMIT: Final = frozenset(("linux",))
"""Its changelogs name commits, and more series are mended than this table has."""


def judge(program: str, version: str, package: Package | None) -> list[Finding]:
    """What the version of a program means; `package` is None where the distribution does not know the file."""
    found = find_version(version)
    if found is None:
        return [Finding(program, "note", f"its version is {version!r}, which says nothing", "update it")]
    findings = [
        _describe(program, version, package, hole)
        for hole in HOLES[program]
        if not is_mended(hole, found) and not _is_named(hole, package)
    ]
    return findings or [Finding(program, "ok", version)]


def _is_named(hole: Hole, package: Package | None) -> bool:
    named = (package and package.named) or frozenset()
    return all(id in named for id in find_ids(hole.ids))


def _describe(program: str, version: str, package: Package | None, hole: Hole) -> Finding:
    if package is not None:
        is_told = package.named is not None and program not in BY_COMMIT
        where = f"the changelog of {package.name} {package.version}"
        found = (
            f"{where} does not name" if is_told else f"the number of {package.name} {package.version} does not tell of"
        )
        state = "warning" if is_told and hole.is_ours else "note"
        return Finding(
            program, state, f"{found} {hole.ids}: {hole.what}", f"apt-get update && apt-get install {package.name}"
        )
    if program in BY_COMMIT and not _has_series(hole, version):
        found = f"{version}: it is not known which version of this series mends {hole.ids}"
        return Finding(program, "note", f"{found}: {hole.what}", "update the kernel, and start the machine anew")
    found = f"{version} has {hole.ids}: {hole.what}"
    return Finding(
        program, "warning" if hole.is_ours else "note", found, f"update {program} to {' or '.join(hole.mended)}"
    )


def _has_series(hole: Hole, version: str) -> bool:
    found = find_version(version) or ()
    return any(_parse(text)[:2] == found[:2] for text in hole.mended)


def find_ids(text: str) -> list[str]:
    """The CVEs that a text names."""
    return re.findall(r"CVE-\d{4}-\d{4,}", text)


def is_mended(hole: Hole, version: Version) -> bool:
    """True where that version does not have it."""
    if version < _parse(hole.since):
        return True
    good = [_parse(text) for text in hole.mended]
    same_series = [first for first in good if first[:2] == version[:2]]
    if same_series:
        return version >= min(same_series)
    return version[:2] > max(good)[:2]


def find_version(text: str) -> Version | None:
    """The first version in a text, such that a release candidate is less than its release: `1.4.0-rc.3` is 1.4.0.-1.3."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[-~+.]?rc[.-]?(\d+))?", text)
    if match is None:
        return None
    major, minor, patch, candidate = match.groups()
    stage = (-1, int(candidate)) if candidate else (0, 0)
    return int(major), int(minor), int(patch or 0), *stage


def _parse(text: str) -> Version:
    return find_version(text if "." in text else f"{text}.0") or ()
