"""A box without isolation: a folder and a keeper."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche.engines.host import HostEngine
from cloche.errors import EngineError
from cloche.images.base import Image
from cloche.models import SandboxSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloche.engines.base import Box

ENGINE = HostEngine()
IMAGE = Image(name="host", rootfs=Path("/"))


@pytest.fixture
def box(home: Path) -> Iterator[Box]:
    made = ENGINE.create("a" * 20, home, SandboxSpec(engine="host"), IMAGE)
    yield made
    ENGINE.delete(made)


def test_its_keeper_is_there_at_once_and_gone_after(box: Box) -> None:
    assert ENGINE.is_alive(box)
    ENGINE.delete(box)
    assert not ENGINE.is_alive(box)
    assert not Path(f"/proc/{box.state['pid']}").exists()
    ENGINE.delete(box)


def test_a_keeper_that_was_killed_is_not_alive(box: Box) -> None:
    pid = int(box.state["pid"])
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not ENGINE.is_alive(box)


def test_another_process_with_its_number_is_not_it(box: Box) -> None:
    state = {**box.state, "started": "1"}
    other = type(box)(id=box.id, engine=box.engine, folder=box.folder, socket=box.socket, state=state)
    ENGINE.delete(other)
    assert not ENGINE.is_alive(other)
    assert ENGINE.is_alive(box)


def test_the_keeper_inherits_nothing_of_ours(box: Box) -> None:
    pid = box.state["pid"]
    assert Path(f"/proc/{pid}/environ").read_bytes().startswith(b"PATH=")
    assert len(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")) == 2
    assert os.getsid(int(pid)) == pid


def test_a_missing_keeper_is_a_fact_and_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [fact.ok for fact in ENGINE.check()] == [True]
    monkeypatch.setenv("CLOCHE_KEEPER", "/none")
    assert [fact.ok for fact in ENGINE.check()] == [False]
    with pytest.raises(EngineError, match="no program at /none"):
        ENGINE.create("b" * 20, home, SandboxSpec(engine="host"), IMAGE)


def test_the_kernel_counts_nothing_for_it(box: Box) -> None:
    assert ENGINE.usage(box).memory_bytes is None
    assert ENGINE.counters(box).read().oom_kills == 0
