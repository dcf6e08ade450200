"""Disks of boxes: formatted once, taken once."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cloche.engines.disks import STOCK, Disks
from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def take_into(disks: Disks, folder: Path) -> Callable[[int], None]:
    def take(number: int) -> None:
        disks.take(folder / f"{number}.img", disk_mb=16, inodes=1024)

    return take


def test_a_disk_is_sparse_whole_and_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    Disks(tmp_path / "disks").take(disk, disk_mb=64, inodes=4096)
    assert disk.stat().st_size == 64 << 20
    assert disk.stat().st_blocks * 512 < 4 << 20
    subprocess.run(["/usr/sbin/e2fsck", "-fn", disk], check=True, capture_output=True)


def test_the_stock_is_filled_and_each_copy_is_given_once(tmp_path: Path) -> None:
    disks = Disks(tmp_path / "disks")
    disks.refill(disk_mb=16, inodes=1024)
    stock = tmp_path / "disks" / "16-1024"
    deadline = time.monotonic() + 30
    while not stock.exists() or len(list(stock.iterdir())) < STOCK:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(take_into(disks, tmp_path), range(STOCK)))
    assert not list(stock.iterdir())
    assert len({(tmp_path / f"{n}.img").stat().st_ino for n in range(STOCK)}) == STOCK


def test_several_that_want_the_first_disk_at_once_all_get_one(tmp_path: Path) -> None:
    disks = Disks(tmp_path / "disks")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take_into(disks, tmp_path), range(4)))
    assert [path.name for path in (tmp_path / "disks").iterdir()] == ["16-1024.ext4"]


def test_a_size_that_cannot_be_formatted_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot format a disk of 1 MB"):
        Disks(tmp_path / "disks").take(tmp_path / "disk.img", disk_mb=1, inodes=10_000_000)


def test_a_size_that_is_dropped_leaves_nothing_even_while_its_stock_is_filled(tmp_path: Path) -> None:
    disks = Disks(tmp_path / "disks")
    disks.take(tmp_path / "disk.img", disk_mb=16, inodes=1024)
    disks.refill(disk_mb=16, inodes=1024)
    disks.drop(disk_mb=16, inodes=1024)
    disks.drop(disk_mb=16, inodes=1024)
    assert list((tmp_path / "disks").iterdir()) == []
