"""Settings of this machine, and its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.doctor.advice import SETTINGS, judge, judge_disk, look_at_disk, look_at_settings

if TYPE_CHECKING:
    from pathlib import Path

SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"
CASES = [
    ("/sys/devices/system/cpu/smt/active", "0", "ok"),
    ("/sys/devices/system/cpu/smt/active", "1", "note"),
    ("/sys/kernel/mm/ksm/run", "0", "ok"),
    ("/sys/kernel/mm/ksm/run", "1", "warning"),
    ("/proc/swaps", SWAPS, "ok"),
    ("/proc/swaps", f"{SWAPS}\n/swapfile file 1024 0 -2", "note"),
    ("/proc/sys/kernel/unprivileged_bpf_disabled", "2", "ok"),
    ("/proc/sys/kernel/unprivileged_bpf_disabled", "0", "warning"),
    ("/proc/sys/kernel/io_uring_disabled", "2", "ok"),
    ("/proc/sys/kernel/io_uring_disabled", "0", "note"),
    ("/proc/sys/kernel/dmesg_restrict", "0", "note"),
    ("/proc/sys/kernel/kptr_restrict", "1", "ok"),
    ("/proc/sys/kernel/yama/ptrace_scope", "0", "note"),
    ("/proc/sys/kernel/core_pattern", "core", "ok"),
    ("/proc/sys/kernel/core_pattern", "|/usr/share/apport/apport -p%p", "note"),
    ("/proc/sys/vm/mmap_min_addr", "65536", "ok"),
    ("/proc/sys/vm/mmap_min_addr", "0", "warning"),
]


@pytest.mark.parametrize(("path", "text", "state"), CASES)
def test_a_setting_is_judged_by_what_it_is(path: str, text: str, state: str) -> None:
    [setting] = [setting for setting in SETTINGS if setting.path == path]
    finding = judge(setting, text)
    assert finding.state == state
    assert bool(finding.repair) is (state != "ok")


def test_each_setting_has_a_case() -> None:
    assert {setting.path for setting in SETTINGS} == {path for path, _, _ in CASES}


def test_what_this_kernel_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {finding.name for finding in look_at_settings()} >= {"/proc/swaps", "kernel.core_pattern"}
    monkeypatch.setattr("cloche.doctor.advice.SETTINGS", (SETTINGS[0]._replace(path="/proc/sys/nothing"),))
    assert look_at_settings() == []


@pytest.mark.parametrize(
    ("free_mib", "inodes", "state"),
    [(5000, 10_000, "ok"), (5000, None, "ok"), (500, 10_000, "warning"), (10, 10_000, "problem"), (5000, 3, "problem")],
)
def test_a_disk_that_is_full_is_a_problem(free_mib: int, inodes: int | None, state: str) -> None:
    assert judge_disk("/data", free_mib, inodes).state == state


def test_a_data_folder_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CLOCHE_HOME", str(tmp_path / "file" / "home"))
    finding = look_at_disk()
    assert (finding.state, finding.repair) == ("problem", "set CLOCHE_HOME to a folder that is yours")
