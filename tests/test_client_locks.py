"""One at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cloche.client.locks import try_lock

if TYPE_CHECKING:
    from pathlib import Path


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    first = try_lock(tmp_path / "lock")
    assert first is not None
    before = len(os.listdir("/proc/self/fd"))
    assert [try_lock(tmp_path / "lock") for _ in range(3)] == [None] * 3
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(first)
    again = try_lock(tmp_path / "lock")
    assert again is not None
    os.close(again)
