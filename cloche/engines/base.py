"""What every engine does: make boxes and unmake them. All else goes through the keeper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cloche.engines.abilities import Ability
    from cloche.images.base import Image
    from cloche.models import SandboxSpec


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was looked at on this machine."""

    name: str
    ok: bool
    found: str
    repair: str = ""
    """What to do where it is not ok, as a command where there is one."""
    needed: bool = True
    """Without it there is no box; else there is one that is missing something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box as its engine needs to know it again; everything in it can be written as JSON."""

    id: str
    engine: str
    """The name of the engine that made it, with its runtime: `embedded:crun`, `host`."""
    folder: Path
    """The box's own folder below CLOCHE_HOME/boxes; the engine may keep files in it."""
    socket: Path
    """Where its keeper listens."""
    state: Mapping[str, str | int]
    """What the engine wants back."""


@dataclass(frozen=True, slots=True)
class Events:
    """The kernel's own count of the limits that a box ran into; never the keeper's word."""

    oom_kills: int = 0
    pids_refused: int = 0


@dataclass(frozen=True, slots=True)
class EngineUsage:
    """What the kernel accounts to a box; None where the engine has no such account."""

    memory_bytes: int | None
    cpu_seconds: float | None


class Counters(Protocol):
    """Where the counts are read from, before and after each execution."""

    def read(self) -> Events: ...


class Engine(Protocol):
    """Blocking and safe to call from several threads; asyncio callers use a thread."""

    name: str

    def check(self) -> list[Fact]:
        """Try what a box needs on this machine."""
        ...

    def abilities(self) -> Mapping[str, Ability]:
        """What it enforces on this machine, for this user, by promise (see `abilities.py`)."""
        ...

    def refuse(self, spec: SandboxSpec) -> None:
        """Raises Unsupported for what this engine cannot enforce, InvalidRequest for what makes no sense."""
        ...

    def create(self, id: str, folder: Path, spec: SandboxSpec, image: Image) -> Box:
        """Make and start a box whose keeper can be connected to at once; on failure nothing is left.

        Raises: EngineError.
        """
        ...

    def delete(self, box: Box) -> None:
        """End it and remove all that belongs to it but its folder; one that is gone or was never whole is fine.

        Of a box whose making was cut short only the id and the folder are known: the state is empty.
        """
        ...

    def is_alive(self, box: Box) -> bool:
        """True while its keeper runs."""
        ...

    def first_process(self, box: Box) -> int | None:
        """Its keeper's number on this machine, to look at what it sees; None where it has ended."""
        ...

    def why_ended(self, box: Box) -> str:
        """The reason (see `sandboxes/states.py`), of one whose keeper is gone."""
        ...

    def counters(self, box: Box) -> Counters:
        """The counters of its limits, held open for as long as the object lives."""
        ...

    def usage(self, box: Box) -> EngineUsage: ...


def life_options(spec: SandboxSpec) -> list[str]:
    """What the keeper is told about the ends that come by themselves."""
    times = {"--idle-ms": spec.idle_timeout, "--life-ms": spec.lifetime}
    return [word for name, seconds in times.items() if seconds for word in (name, str(max(1, round(seconds * 1000))))]


def read_mark(folder: Path) -> str | None:
    """Why a keeper ended by itself, by the folder that it makes then."""
    marks = {"end-idle": "idle", "end-life": "end_of_life"}
    return next((reason for mark, reason in marks.items() if (folder / mark).is_dir()), None)


Enforced = Literal["kernel", "keeper", "no"]
