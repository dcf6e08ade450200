"""The plain data that passes between the parts, and to the user."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

WorkspaceAccess = Literal["none", "ro", "rw"]
LimitName = Literal["timeout", "memory_mb", "disk_mb", "inodes", "pids", "output_bytes"]

MIB = 1 << 20
ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH = 20
IDLE_SECONDS = 600.0
LIFE_SECONDS = 30 * 86400.0


def random_id() -> str:
    """One that nobody can guess, and that host names can hold."""
    # Of more bits than it takes, so that no letter is likelier; `secrets` would take 5 ms to import.
    number = int.from_bytes(os.urandom(2 * ID_LENGTH))
    letters: list[str] = []
    for _ in range(ID_LENGTH):
        number, letter = divmod(number, len(ID_ALPHABET))
        letters.append(ID_ALPHABET[letter])
    return "".join(letters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a sandbox may use at most; fixed once it is made."""

    cpus: float = 1.0
    """CPU cores, fractions allowed."""
    memory_mb: int = 512
    """Memory and shared memory, no swap, in MiB."""
    disk_mb: int = 1024
    """Everything that can be written, in MiB."""
    inodes: int = 65_536
    """Files, folders and links that can be made."""
    pids: int = 128
    """Processes and threads."""
    timeout: float = 30.0
    """Seconds for one execution; 0 means no limit."""
    output_bytes: int = MIB
    """Output that is kept of one execution; 0 means all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is to be, complete: nothing in it is left to be guessed by an engine."""

    image: str = "host"
    """The name of an image (see `cloche.images`)."""
    engine: str = "embedded"
    """`embedded`, `embedded:crun`, `embedded:runc` or `host`."""
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """The sandbox's own environment; every execution starts from it."""
    user: Literal["user", "root"] = "user"
    """`root` is root of the box's own user namespace, with what package managers need."""
    workspace: str | None = None
    """A folder of this machine, shown at /workspace."""
    workspace_access: WorkspaceAccess = "none"
    name: str | None = None
    """A name for people, which no other sandbox has at the same time; ids stay what they are."""
    idle_timeout: float = IDLE_SECONDS
    """Seconds without use until it ends by itself; 0 means never."""
    lifetime: float = LIFE_SECONDS
    """Seconds until it ends, used or not; 0 means never."""
    explicit: frozenset[str] = frozenset()
    """The limits that were asked for by name. The others are defaults: the engine `host` leaves them out."""
    without: frozenset[str] = frozenset()
    """The limits that may be missing, where this machine can't enforce them for this user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How one execution ended."""

    stdout: str
    stderr: str
    exit_code: int
    """As the shell has it: 128 + the signal's number where a signal ended it."""
    signal: int | None
    """The signal that ended it, if one did."""
    pid: int
    """The process's number inside the sandbox."""
    wall_seconds: float
    cpu_seconds: float
    """User and system time of the process and of the children that it waited for."""
    peak_memory_bytes: int
    """The largest of its processes, at its largest."""
    limit_hit: LimitName | None = None
    """The limit that it ran into, if it did."""
    message: str | None = None
    """Which limit that was, and what to do about it, in words."""
    output_dropped: int = 0
    """Octets of output left out in the middle; `stdout` and `stderr` say where."""
    left_running: bool = False
    """It left processes running; they end with the time limit or the sandbox."""

    @property
    def ok(self) -> bool:
        """True where the exit code is 0."""
        return self.exit_code == 0

    def check(self) -> CommandResult:
        """Itself, or an error where the exit code is not 0.

        Raises: CommandTimeout, CommandFailed.
        """
        from cloche.errors import CommandFailed, CommandTimeout

        if self.limit_hit == "timeout":
            raise CommandTimeout(self.message or "the time limit is up", result=self)
        if not self.ok:
            tail = (self.stderr or self.stdout).strip().splitlines()[-1:]
            detail = self.message or "".join(tail)
            raise CommandFailed(f"exit code {self.exit_code}: {detail}", result=self)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, folder or link in a sandbox."""

    name: str
    path: str
    kind: Literal["file", "folder", "link", "pipe", "socket", "device"]
    size: int
    mode: int
    """Permission bits."""
    uid: int
    gid: int
    modified: float
    """Seconds since the epoch."""
    target: str | None = None
    """Where a link points to, as it is written in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEvent:
    """A change in a watched folder."""

    kind: Literal["made", "written", "removed", "moved_from", "moved_to", "attributes", "lost"]
    name: str
    """Relative to the watched folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """A process in a sandbox."""

    pid: int
    parent: int
    uid: int
    argv: tuple[str, ...]
    state: str
    is_execution: bool
    background: bool
    started: float
    cpu_seconds: float
    memory_bytes: int
    tag: str = ""
    exit_code: int | None = None
    """None while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a sandbox uses at this moment."""

    memory_bytes: int | None
    cpu_seconds: float | None
    processes: int
    disk_bytes: int
    disk_free_bytes: int
    inodes: int
    inodes_free: int
    oom_kills: int
    """How often the kernel ended a process here for want of memory."""
    pids_refused: int
    """How often the kernel refused a process here."""
    idle_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChunk:
    """A piece of a process's output."""

    stream: Literal["stdout", "stderr", "gap"]
    """`gap`: octets that are no longer kept."""
    offset: int
    """Of its first octet, in both streams together."""
    data: bytes
    """Empty for a gap."""
    size: int
    """Octets, those of a gap as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningPort:
    """A port that a process in a sandbox listens on."""

    port: int
    address: str
    uid: int
