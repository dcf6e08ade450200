"""What root prepares once for an ordinary user: ids for user namespaces, and cgroups to set limits in.

Each step is looked at first, and taken where it is missing: it may be done any number of times.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cloche.engines.cgroups import NEEDED, all_hierarchies, parent_of
from cloche.engines.machine import SYSTEM_PATH, find_program
from cloche.engines.subids import MAPPERS, SLICE, parse_ranges
from cloche.errors import EngineError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_ID: Final = 100_000
IDS: Final = 65_536
V1_CONTROLLERS: Final = (*NEEDED, "cpuacct")
"""The last one only counts."""
DELEGATE: Final = "[Service]\nDelegate=cpu cpuset io memory pids\n"
ID_FILES: Final = (Path("/etc/subuid"), Path("/etc/subgid"))
SYSTEMD: Final = Path("/run/systemd/system")
TMPFILES: Final = Path("/etc/tmpfiles.d")
UNITS: Final = Path("/etc/systemd/system")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an ordinary user's boxes need of root."""

    name: str
    is_done: bool
    found: str
    does: str
    """What taking it changes on this machine."""
    take: Callable[[], None]


def steps_for(name: str) -> list[Step]:
    """All of them, for the user of that name.

    Raises: NotFound.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise NotFound(f"there is no user {name!r} on this machine; make one: useradd --create-home {name}") from None
    return [_mappers(), _ids(user), *(_v2(user) if all_hierarchies().unified else _v1(user))]


def _mappers() -> Step:
    missing = [program for program in MAPPERS if find_program(program) is None]
    return Step(
        "newuidmap",
        not missing,
        f"missing: {', '.join(missing)}" if missing else "installed",
        "apt-get install uidmap",
        lambda: _run("apt-get", "install", "-y", "--no-install-recommends", "uidmap"),
    )


def _ids(user: pwd.struct_passwd) -> Step:
    names = (user.pw_name, str(user.pw_uid))
    counts = [sum(count // SLICE for _, count in parse_ranges(_read(path), names)) for path in ID_FILES]
    first = _first_free()
    span = f"{first}-{first + IDS - 1}"
    return Step(
        "user ids",
        min(counts) > 0,
        f"enough for {min(counts)} boxes at once",
        f"usermod --add-subuids {span} --add-subgids {span} {user.pw_name}",
        lambda: _run("usermod", "--add-subuids", span, "--add-subgids", span, user.pw_name),
    )


def _first_free() -> int:
    rows = [line.split(":") for path in ID_FILES for line in _read(path).splitlines()]
    ends = [int(row[1]) + int(row[2]) for row in rows if len(row) == 3 and row[1].isdecimal() and row[2].isdecimal()]
    return max([FIRST_ID, *ends])


def _v1(user: pwd.struct_passwd) -> list[Step]:
    v1 = all_hierarchies().v1
    folders = sorted({v1[name] / parent_of(user.pw_uid) for name in V1_CONTROLLERS if name in v1})
    missing = [folder for folder in folders if not folder.is_dir() or folder.stat().st_uid != user.pw_uid]
    lines = "".join(f"d {folder} 0755 {user.pw_uid} {user.pw_gid} -\n" for folder in folders)
    keep = TMPFILES / f"{parent_of(user.pw_uid)}.conf"
    steps = [
        Step(
            "cgroups",
            bool(folders) and not missing,
            f"missing: {', '.join(map(str, missing))}" if missing else f"{len(folders)} folders of the user's",
            f"makes {', '.join(map(str, folders))}, which belong to {user.pw_name}",
            lambda: _make_folders(folders, user),
        )
    ]
    if SYSTEMD.is_dir():
        steps.append(_file("cgroups after a restart", keep, lines))
    return steps


def _make_folders(folders: list[Path], user: pwd.struct_passwd) -> None:
    for folder in folders:
        folder.mkdir(exist_ok=True)
        os.chown(folder, user.pw_uid, user.pw_gid)


def _v2(user: pwd.struct_passwd) -> list[Step]:
    if not SYSTEMD.is_dir():
        return [
            Step(
                "cgroups",
                False,
                "no systemd to delegate them",
                f"nothing: have whatever starts the session of {user.pw_name} put it into a cgroup of that user's",
                lambda: None,
            )
        ]
    drop_in = UNITS / f"user@{user.pw_uid}.service.d" / "cloche.conf"
    linger = Path("/var/lib/systemd/linger", user.pw_name)
    return [
        _file("cgroups", drop_in, DELEGATE, then=("systemctl", "daemon-reload")),
        Step(
            "boxes outlive the session",
            linger.exists(),
            "yes" if linger.exists() else "no",
            f"loginctl enable-linger {user.pw_name}",
            lambda: _run("loginctl", "enable-linger", user.pw_name),
        ),
    ]


def _file(name: str, path: Path, content: str, *, then: tuple[str, ...] = ()) -> Step:
    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="ascii")
        if then:
            _run(*then)

    is_done = _read(path) == content
    return Step(name, is_done, str(path) if is_done else f"no {path}", f"writes {path}", write)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _run(*command: str) -> None:
    program = find_program(command[0])
    if program is None:
        raise EngineError(f"{command[0]} is not installed; do by hand what `{' '.join(command)}` would do here")
    environment = {"PATH": SYSTEM_PATH, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise EngineError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()[-500:]}")
