"""Whatever a keeper says, this side keeps its memory, its time and its temper, and ends the box (promise 13)."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.client._sync import commands, link, runs
from cloche.errors import ProtocolError, SandboxError, SandboxNotFound
from tests.security.lab import compile_attack, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NONSENSE = ("GARBAGE", "LENGTH", "SHORT", "OVERLONG", "UNKNOWN", "ORDER", "EXIT_CODE", "FLOOD", "GAPS")
SILENCE = ("CUT", "STALL", "DRIP")
MOST_MEMORY_KB = 32 << 10


@pytest.fixture
def box_of(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Sandbox]]:
    """Makes a box whose keeper does that."""
    made: list[Sandbox] = []

    def make(way: str) -> Sandbox:
        tmp_path.chmod(0o755)
        keeper = tmp_path / "keeper"
        keeper.write_bytes(compile_attack("hostile_keeper", f"-DWAY={way}"))
        keeper.chmod(0o755)
        monkeypatch.setenv("CLOCHE_KEEPER", str(keeper))
        made.append(Sandbox.create(engine=engine))
        return made[-1]

    yield make
    for box in made:
        box.kill()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits of the library, made short."""
    monkeypatch.setattr(commands, "START_SECONDS", 0.5)
    monkeypatch.setattr(runs, "START_SECONDS", 0.5)
    monkeypatch.setattr(runs, "ABANDON_SECONDS", 0.2)
    monkeypatch.setattr(runs, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(link, "REPLY_SECONDS", 0.5)


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("way", NONSENSE)
def test_nonsense_is_an_error_and_the_end_of_the_box(box_of: Callable[[str], Sandbox], way: str) -> None:
    box = box_of(way)
    before, began = peak_kb(), time.monotonic()
    with pytest.raises(ProtocolError):
        box.commands.run(["true"], timeout=1)
    assert time.monotonic() - began < 5
    assert peak_kb() - before < MOST_MEMORY_KB
    assert not runs_of(box).parent.exists()


@pytest.mark.parametrize("way", SILENCE)
def test_silence_is_an_error_in_bounded_time(box_of: Callable[[str], Sandbox], way: str) -> None:
    box = box_of(way)
    began = time.monotonic()
    with pytest.raises(SandboxError):
        box.commands.run(["true"], timeout=1)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("way", NONSENSE)
def test_other_requests_do_not_hang_either(box_of: Callable[[str], Sandbox], way: str) -> None:
    box = box_of(way)
    began = time.monotonic()
    for ask in (
        box.usage,
        box.ports,
        box.commands.list,
        lambda: box.files.list("/"),
        lambda: box.files.read("/etc/passwd"),
    ):
        with pytest.raises((SandboxError, SandboxNotFound)):
            ask()
    assert time.monotonic() - began < 5


def test_a_list_without_end_is_cut_off(box_of: Callable[[str], Sandbox], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "MOST_OCTETS", 4 << 20)
    box = box_of("REPLIES")
    before, began = peak_kb(), time.monotonic()
    with pytest.raises(ProtocolError):
        box.files.list("/")
    assert peak_kb() - before < MOST_MEMORY_KB
    assert time.monotonic() - began < 5
    assert not runs_of(box).parent.exists()


def test_one_hostile_box_does_not_hurt_another(box_of: Callable[[str], Sandbox], sandbox: Sandbox) -> None:
    hostile = box_of("GARBAGE")
    with pytest.raises(ProtocolError):
        hostile.commands.run(["true"])
    assert sandbox.commands.run(["echo", "well"]).check().stdout == "well\n"
