"""Counters of limits, read again and again."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest

from cloche.engines.base import Events
from cloche.engines.counters import CgroupCounters, CounterFile, NoCounters

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("oom_kill 3\n", 3),
        ("low 1\noom_kill 12\nhigh 2\n", 12),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 7", 7),
        ("", 0),
    ],
)
def test_the_number_behind_the_name_is_read(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "events").write_text(text)
    assert CounterFile(tmp_path / "events", "oom_kill").read() == count


def test_it_follows_the_file(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("max 1\n")
    file = CounterFile(tmp_path / "events", "max")
    assert file.read() == 1
    (tmp_path / "events").write_text("max 2\n")
    assert file.read() == 2


def test_of_a_box_that_is_gone_there_is_nothing_to_count(tmp_path: Path) -> None:
    gone = CounterFile(tmp_path / "gone", "max")
    assert CgroupCounters(gone, gone).read() == NoCounters().read() == Events()


def test_it_is_closed_with_its_object(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("max 1\n")
    before = len(os.listdir("/proc/self/fd"))
    file = CounterFile(tmp_path / "events", "max")
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del file
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
