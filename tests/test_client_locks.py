"""One at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cloche.client import locks
from cloche.client.locks import lock_file
from cloche.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.05)
    first = lock_file(tmp_path / "lock")
    with pytest.raises(SandboxError, match="another program has held"):
        lock_file(tmp_path / "lock")
    os.close(first)
    os.close(lock_file(tmp_path / "lock"))


def test_waiting_leaves_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.01)
    first = lock_file(tmp_path / "lock")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(SandboxError):
            lock_file(tmp_path / "lock")
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(first)
