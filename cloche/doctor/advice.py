"""Settings of this machine that make an escape easier: what each should be, as data, and a reading of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cloche import settings
from cloche.doctor.findings import Finding
from cloche.errors import ClocheError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche.doctor.findings import State

MIB: Final = 1 << 20
SHORT_MIB: Final = 1024
"""Free space of one box's disk."""
FULL_MIB: Final = 64
FREE: Final = "free some there, or set CLOCHE_HOME to a folder on a larger disk"
MOVE: Final = "set CLOCHE_HOME to a folder that is yours"


class Setting(NamedTuple):
    """A file in /proc or /sys that the kernel tells a setting by."""

    path: str
    is_good: Callable[[str], bool]
    why: str
    """What it means where it is not good."""
    repair: str
    state: State = "note"


def has_no_swap(text: str) -> bool:
    """Of a table with a head."""
    return len(text.splitlines()) < 2


def is_a_file(text: str) -> bool:
    """Not a program that the kernel starts."""
    return not text.startswith("|")


def is_a_page(text: str) -> bool:
    """At least one."""
    return int(text) >= 4096


def is_not(bad: str) -> Callable[[str], bool]:
    """True of all but that text."""
    return lambda text: text != bad


def _sysctl(name: str, value: str, bad: str, why: str, state: State = "note") -> Setting:
    return Setting(f"/proc/sys/{name.replace('.', '/')}", is_not(bad), why, f"sysctl -w {name}={value}", state)


SETTINGS: Final = (
    Setting(
        "/sys/devices/system/cpu/smt/active",
        is_not("1"),
        "boxes share cores with other programs, and may learn what those do",
        "echo off > /sys/devices/system/cpu/smt/control, where boxes of strangers run",
    ),
    Setting(
        "/sys/kernel/mm/ksm/run",
        is_not("1"),
        "equal pages are merged, which tells one box what another one holds",
        "echo 2 > /sys/kernel/mm/ksm/run",
        "warning",
    ),
    Setting(
        "/proc/swaps",
        has_no_swap,
        "what programs hold in memory may be written to a disk",
        "swapoff -a, or encrypt the swap",
    ),
    _sysctl(
        "kernel.unprivileged_bpf_disabled",
        "1",
        "0",
        "any user may load BPF programs; a box's filter refuses it",
        "warning",
    ),
    _sysctl("kernel.io_uring_disabled", "2", "0", "any user may use io_uring; a box's filter refuses it"),
    _sysctl("kernel.dmesg_restrict", "1", "0", "any user reads the kernel's messages; a box does not"),
    _sysctl("kernel.kptr_restrict", "2", "0", "the kernel tells its addresses to some of the users; not to a box"),
    _sysctl("kernel.yama.ptrace_scope", "1", "0", "programs of one user may read each other's memory; not in a box"),
    Setting(
        "/proc/sys/kernel/core_pattern",
        is_a_file,
        "a crash starts a program as root; not a crash in a box",
        "sysctl -w kernel.core_pattern=core",
    ),
    Setting(
        "/proc/sys/vm/mmap_min_addr",
        is_a_page,
        "the kernel's null pointers lead to memory of programs",
        "sysctl -w vm.mmap_min_addr=65536",
        "warning",
    ),
)


def look_at_settings() -> list[Finding]:
    """Those of them that this kernel has."""
    return [judge(setting, text) for setting in SETTINGS if (text := _read(setting.path)) is not None]


def judge(setting: Setting, text: str) -> Finding:
    """What the setting means, as it was found."""
    path = setting.path
    name = path.removeprefix("/proc/sys/").replace("/", ".") if path.startswith("/proc/sys/") else path
    first = text.partition("\n")[0] if path != "/proc/swaps" else f"{max(0, len(text.splitlines()) - 1)} in use"
    if setting.is_good(text):
        return Finding(name, "ok", first)
    return Finding(name, setting.state, f"{first}: {setting.why}", setting.repair)


def look_at_disk() -> Finding:
    """Where the boxes' disks lie."""
    try:
        home = settings.home()
        disk = os.statvfs(home)
    except (ClocheError, OSError) as error:
        return Finding("disk", "problem", f"the folder of all data can't be used: {error}", MOVE)
    if not os.access(home, os.W_OK | os.X_OK):
        return Finding("disk", "problem", f"{home} is not yours to write to", MOVE)
    free_mib = disk.f_bavail * disk.f_frsize // MIB
    # File systems that make inodes as they are needed say 0 of 0.
    return judge_disk(str(home), free_mib, disk.f_favail if disk.f_files else None)


def judge_disk(home: str, free_mib: int, free_inodes: int | None) -> Finding:
    """Whether there is room for another box."""
    if free_mib < FULL_MIB or (free_inodes is not None and free_inodes < FULL_MIB):
        return Finding("disk", "problem", f"{home} is full: {free_mib} MB are free", FREE)
    if free_mib < SHORT_MIB:
        return Finding("disk", "warning", f"{home}: {free_mib} MB are free, less than the disk of one sandbox", FREE)
    return Finding("disk", "ok", f"{home}: {free_mib} MB are free")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
