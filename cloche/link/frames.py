"""The frames of docs/protocol.md as plain data, and their octets; no input or output here.

A frame's class is its layout: fields in the order of the wire, the type of each beside it.
"""

# No `from __future__ import annotations`: the layouts are read from the annotations.
from collections.abc import Callable
from functools import lru_cache
from struct import Struct, error
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar, dataclass_transform

from cloche.errors import InvalidRequest, ProtocolError

VERSION: Final = 1
MAX_PAYLOAD: Final = 1 << 20
MAX_ITEMS: Final = 4096
HEADER: Final = Struct("<IB")
_COUNT: Final = Struct("<I")


class _Field(NamedTuple):
    code: str
    """A letter of `struct`, or: `octets`, `string` (no NUL), `strings`, `rest`."""
    allowed: frozenset[int] | None = None
    """Numbers that may stand here; for octets: how many of them."""


U8: TypeAlias = Annotated[int, _Field("B")]
U16: TypeAlias = Annotated[int, _Field("H")]
U32: TypeAlias = Annotated[int, _Field("I")]
U64: TypeAlias = Annotated[int, _Field("Q")]
I32: TypeAlias = Annotated[int, _Field("i")]
I64: TypeAlias = Annotated[int, _Field("q")]
Octets: TypeAlias = Annotated[bytes, _Field("octets")]
String: TypeAlias = Annotated[bytes, _Field("string")]
Strings: TypeAlias = Annotated[tuple[bytes, ...], _Field("strings")]
Rest: TypeAlias = Annotated[bytes | memoryview, _Field("rest")]
Address: TypeAlias = Annotated[bytes, _Field("octets", frozenset((4, 16)))]


class _Step(NamedTuple):
    """One part of a payload: a row of numbers, or one field of another kind."""

    kind: str
    numbers: Struct
    names: tuple[str, ...]
    allowed: tuple[frozenset[int] | None, ...]


class Frame:
    """The base of them all."""

    __slots__ = ()
    TYPE: ClassVar[int]
    NAME: ClassVar[str]
    STEPS: ClassVar[tuple[_Step, ...]]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, key) == getattr(other, key) for key in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={getattr(self, key)!r}' for key in self.__slots__)})"


_F = TypeVar("_F", bound=Frame)
BY_TYPE: Final[dict[int, type[Frame]]] = {}


@dataclass_transform(eq_default=False)
def _frame(number: int, name: str) -> Callable[[type[_F]], type[_F]]:
    """Makes a class a frame: slots, a constructor and its layout, from its annotations.

    `dataclasses` does the first two as well, but takes 20 ms to import and make these classes.
    """

    def decorate(cls: type[_F]) -> type[_F]:
        fields: dict[str, Any] = vars(cls).get("__annotations__", {})
        body: dict[str, Any] = {}
        lines = [f"    self.{key} = {key}" for key in fields] or ["    pass"]
        source = [f"def __init__(self, {', '.join(fields)}):", *lines]
        exec("\n".join(source), body)  # noqa: S102 (names of this file only)
        own = {
            key: vars(cls)[key]
            for key in ("__module__", "__qualname__", "__doc__", "__annotations__")
            if key in vars(cls)
        }
        steps = _steps([(key, hint.__metadata__[0]) for key, hint in fields.items()])
        own |= {"__slots__": tuple(fields), "__init__": body["__init__"], "TYPE": number, "NAME": name, "STEPS": steps}
        made: type[_F] = type(cls)(cls.__name__, cls.__bases__, own)
        BY_TYPE[number] = made
        return made

    return decorate


def _steps(fields: list[tuple[str, _Field]]) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    numbers: list[tuple[str, _Field]] = []

    def flush() -> None:
        if numbers:
            layout = Struct("<" + "".join(field.code for _, field in numbers))
            names, allowed = (name for name, _ in numbers), (field.allowed for _, field in numbers)
            steps.append(_Step("numbers", layout, tuple(names), tuple(allowed)))
            numbers.clear()

    for name, field in fields:
        if len(field.code) == 1:
            numbers.append((name, field))
            continue
        flush()
        steps.append(_Step(field.code, _COUNT, (name,), (field.allowed,)))
    flush()
    return tuple(steps)


# Requests (types 1 to 31; each begins with the version)

RUN_STDIN: Final = 1
RUN_PTY: Final = 2
RUN_BACKGROUND: Final = 4
RUN_CHANNEL: Final = 8
ATTACH_FOLLOW: Final = 1
ATTACH_OWN: Final = 2
INPUT_DATA: Final = 0
INPUT_END: Final = 1
INPUT_RESIZE: Final = 2
SCOPE_PROCESS: Final = 0
SCOPE_TREE: Final = 2
WATCH_RECURSIVE: Final = 1
WRITE_APPEND: Final = 1
PARENTS: Final = 2
WRITE_EXCLUSIVE: Final = 4
STAT_NOFOLLOW: Final = 1
REMOVE_RECURSIVE: Final = 1
MAKE_FOLDER: Final = 1
MAKE_LINK: Final = 2


@_frame(1, "RUN")
class Run(Frame):
    """Start a process."""

    flags: U32
    uid: U32
    gid: U32
    time_limit_ms: U64
    output_limit: U64
    rows: U16
    cols: U16
    cwd: String
    tag: Octets
    argv: Strings
    env: Strings


@_frame(2, "ATTACH")
class Attach(Frame):
    """Get a run's output from an offset."""

    flags: U32
    pid: U32
    offset: U64


@_frame(3, "INPUT")
class Input(Frame):
    """Feed a run's standard input."""

    pid: U32
    kind: Annotated[int, _Field("B", frozenset(range(3)))]
    rows: U16
    cols: U16
    data: Octets


@_frame(4, "SIGNAL")
class Signal(Frame):
    """Send a signal."""

    pid: U32
    signal: U32
    scope: Annotated[int, _Field("B", frozenset((0, 2)))]


@_frame(5, "PROCESSES")
class Processes(Frame):
    """List what runs."""


@_frame(6, "USAGE")
class Usage(Frame):
    """Ask what is used."""


@_frame(7, "PORTS")
class Ports(Frame):
    """List what listens."""


@_frame(8, "CONNECT")
class Connect(Frame):
    """Open a stream to a port inside."""

    port: U16


@_frame(9, "EGRESS")
class Egress(Frame):
    """Wait for the next connection that wants out."""


@_frame(10, "WATCH")
class Watch(Frame):
    """Watch a folder."""

    flags: U32
    uid: U32
    gid: U32
    path: String


@_frame(11, "READ")
class Read(Frame):
    """Read a file."""

    uid: U32
    gid: U32
    offset: U64
    limit: U64
    path: String


@_frame(12, "WRITE")
class Write(Frame):
    """Write a file: DATA and END follow."""

    flags: U32
    uid: U32
    gid: U32
    mode: U32
    path: String


@_frame(13, "STAT")
class Stat(Frame):
    """Look at a file."""

    flags: U32
    uid: U32
    gid: U32
    path: String


@_frame(14, "LIST")
class List(Frame):
    """List a folder."""

    uid: U32
    gid: U32
    depth: U32
    path: String


@_frame(15, "MAKE")
class Make(Frame):
    """Make a folder or a link."""

    flags: U32
    uid: U32
    gid: U32
    mode: U32
    kind: Annotated[int, _Field("B", frozenset((1, 2)))]
    path: String
    target: String


@_frame(16, "MOVE")
class Move(Frame):
    """Rename."""

    flags: U32
    uid: U32
    gid: U32
    source: String
    destination: String


@_frame(17, "REMOVE")
class Remove(Frame):
    """Remove a file or a folder."""

    flags: U32
    uid: U32
    gid: U32
    path: String


# What a client sends after its request


@_frame(32, "STDIN")
class Stdin(Frame):
    """Octets for standard input."""

    data: Rest


@_frame(33, "STDIN_END")
class StdinEnd(Frame):
    """The end of standard input."""


@_frame(34, "RESIZE")
class Resize(Frame):
    """The terminal's size."""

    rows: U16
    cols: U16


# Replies

EXIT_TIME_LIMIT: Final = 1
EXIT_KILLED: Final = 2
EXIT_LEFT_RUNNING: Final = 4
EXIT_DISK_FULL: Final = 8
EXIT_INODES_FULL: Final = 16
PROCESS_RUN: Final = 1
PROCESS_BACKGROUND: Final = 2
PROCESS_ENDED: Final = 4
PROCESS_KILLED: Final = 32


@_frame(64, "STARTED")
class Started(Frame):
    """The run is there."""

    pid: U32
    started_ns: U64
    offset: U64


@_frame(65, "STDOUT")
class Stdout(Frame):
    """Octets of standard output."""

    data: Rest


@_frame(66, "STDERR")
class Stderr(Frame):
    """Octets of standard error."""

    data: Rest


@_frame(67, "GAP")
class Gap(Frame):
    """Octets were dropped here."""

    octets: U64


@_frame(68, "EXIT")
class Exit(Frame):
    """The run has ended."""

    exit_code: I32
    signal: U32
    flags: U32
    wall_ns: U64
    user_us: U64
    system_us: U64
    peak_bytes: U64
    dropped: U64
    offset: U64


@_frame(69, "OK")
class Ok(Frame):
    """Done."""

    value: U64


@_frame(70, "ERROR")
class Error(Frame):
    """Refused or failed: a number of errno and words."""

    code: U32
    message: Octets


@_frame(71, "DATA")
class Data(Frame):
    """Octets of a file."""

    data: Rest


@_frame(72, "END")
class End(Frame):
    """No more of it."""


@_frame(73, "ENTRY")
class Entry(Frame):
    """A file, folder or link."""

    kind: Annotated[int, _Field("B", frozenset(b"fdlpscb"))]
    mode: U32
    uid: U32
    gid: U32
    size: U64
    mtime_ns: I64
    inode: U64
    links: U32
    name: String
    target: String


@_frame(74, "EVENT")
class Event(Frame):
    """A change in a watched folder."""

    kind: Annotated[int, _Field("B", frozenset(range(1, 8)))]
    name: String


@_frame(75, "PROCESS")
class Process(Frame):
    """A process."""

    pid: U32
    parent: U32
    uid: U32
    flags: U32
    state: U8
    exit_code: I32
    signal: U32
    started_ns: U64
    cpu_us: U64
    memory_bytes: U64
    offset: U64
    tag: Octets
    argv: Strings


@_frame(76, "PORT")
class Port(Frame):
    """A port that something listens on."""

    address: Address
    port: U16
    uid: U32


@_frame(77, "USAGE_IS")
class UsageIs(Frame):
    """What is used."""

    disk_bytes: U64
    disk_free: U64
    inodes: U64
    inodes_free: U64
    uptime_ms: U64
    idle_ms: U64
    processes: U32
    runs: U32


@_frame(78, "PEER")
class Peer(Frame):
    """Where a connection wants to go."""

    address: Address
    port: U16


REPLIES: Final = frozenset(kind for kind in BY_TYPE if kind >= 64)
FIXED: Final = {
    kind: cls.STEPS[0].numbers
    for kind, cls in BY_TYPE.items()
    if [step.kind for step in cls.STEPS] == ["numbers"] and not any(cls.STEPS[0].allowed) and kind >= 32
}
"""Frames that are one row of numbers, each of any value."""
STREAMED: Final[dict[int, Any]] = {cls.TYPE: cls for cls in (Stdout, Stderr, Data)}


def encode(frame: Frame) -> bytes:
    """The whole frame, header included.

    Raises: InvalidRequest.
    """
    parts: list[bytes | memoryview] = [b"", b"\x01"] if frame.TYPE < 32 else [b""]
    try:
        for step in frame.STEPS:
            _encode_step(frame, step, parts)
    except error as problem:
        raise InvalidRequest(f"{frame.NAME}: a number does not fit: {problem}") from None
    length = sum(map(len, parts))
    if length > MAX_PAYLOAD:
        raise InvalidRequest(f"{frame.NAME} has {length} octets; at most {MAX_PAYLOAD} fit in one request")
    parts[0] = HEADER.pack(length, frame.TYPE)
    return b"".join(parts)


def _encode_step(frame: Frame, step: _Step, parts: list[bytes | memoryview]) -> None:
    if step.kind == "numbers":
        parts.append(step.numbers.pack(*[getattr(frame, name) for name in step.names]))
        return
    value = getattr(frame, step.names[0])
    if step.kind == "rest":
        parts.append(value)
    elif step.kind == "strings":
        parts.append(_encode_strings(step.names[0], value))
    else:
        _check_string(step, value)
        parts.append(_COUNT.pack(len(value)))
        parts.append(value)


# The environment of a sandbox's executions is the same each time.
@lru_cache(maxsize=128)
def _encode_strings(name: str, items: tuple[bytes, ...]) -> bytes:
    if len(items) > MAX_ITEMS:
        raise InvalidRequest(f"{name} has {len(items)} items; at most {MAX_ITEMS} are possible")
    parts = [_COUNT.pack(len(items))]
    for item in items:
        if 0 in item:
            raise InvalidRequest(f"{name} must not hold a NUL: found {item[:80]!r}")
        parts.append(_COUNT.pack(len(item)))
        parts.append(item)
    return b"".join(parts)


def _check_string(step: _Step, value: bytes) -> None:
    allowed = step.allowed[0]
    if step.kind == "string" and 0 in value:
        raise InvalidRequest(f"{step.names[0]} must not hold a NUL: found {value[:80]!r}")
    if allowed is not None and len(value) not in allowed:
        raise InvalidRequest(f"{step.names[0]} has {len(value)} octets; {sorted(allowed)} were expected")


def weigh(frame: Frame) -> int:
    """About as many octets as it takes to keep it."""
    weight = 64
    for key in frame.__slots__:
        value = getattr(frame, key)
        if isinstance(value, tuple):
            weight += sum(64 + len(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif not isinstance(value, int):
            weight += len(value)
    return weight


def decode(type: int, payload: bytes) -> Frame:
    """The frame of that type in these octets, which it must use up.

    Raises: ProtocolError.
    """
    cls = BY_TYPE.get(type)
    if cls is None:
        raise ProtocolError(f"frame type {type} is not known")
    position = 0
    if type < 32:
        if payload[:1] != b"\x01":
            raise ProtocolError(f"{cls.NAME}: version {payload[:1]!r}; {VERSION} was expected")
        position = 1
    values: list[Any] = []
    for step in cls.STEPS:
        position = _decode_step(cls, step, payload, position, values)
    if position != len(payload):
        raise ProtocolError(f"{cls.NAME}: {len(payload) - position} octets too many")
    return cls(*values)


def _decode_step(cls: type[Frame], step: _Step, payload: bytes, position: int, values: list[Any]) -> int:
    if step.kind == "rest":
        values.append(payload[position:])
        return len(payload)
    if position + step.numbers.size > len(payload):
        raise ProtocolError(f"{cls.NAME}: {len(payload)} octets are too few")
    numbers = step.numbers.unpack_from(payload, position)
    position += step.numbers.size
    if step.kind == "numbers":
        for name, value, allowed in zip(step.names, numbers, step.allowed, strict=True):
            if allowed is not None and value not in allowed:
                raise ProtocolError(f"{cls.NAME}: {name} is {value}, which means nothing")
        values.extend(numbers)
        return position
    if step.kind != "strings":
        value, position = _octets(cls, step, payload, position, numbers[0])
        values.append(value)
        return position
    if numbers[0] > MAX_ITEMS:
        raise ProtocolError(f"{cls.NAME}: a list of {numbers[0]}; at most {MAX_ITEMS} are allowed")
    items: list[bytes] = []
    for _ in range(numbers[0]):
        if position + 4 > len(payload):
            raise ProtocolError(f"{cls.NAME}: a list ends too early")
        item, position = _octets(cls, step, payload, position + 4, _COUNT.unpack_from(payload, position)[0])
        items.append(item)
    values.append(tuple(items))
    return position


def _octets(cls: type[Frame], step: _Step, payload: bytes, position: int, count: int) -> tuple[bytes, int]:
    end = position + count
    if end > len(payload):
        raise ProtocolError(f"{cls.NAME}: {step.names[0]} has {count} octets, the frame not that many")
    value = payload[position:end]
    if step.kind != "octets" and 0 in value:
        raise ProtocolError(f"{cls.NAME}: a NUL in {step.names[0]}")
    if step.allowed[0] is not None and count not in step.allowed[0]:
        raise ProtocolError(f"{cls.NAME}: {step.names[0]} has {count} octets, which means nothing")
    return value, end


def _make(type: int, *values: Any) -> Frame:
    return BY_TYPE[type](*values)


class Reader:
    """Turns octets as they come into frames, in a buffer that is used again and again.

    Fill `space()`, tell `filled()` how much, then call `next()` until it gives None.
    STDOUT, STDERR and DATA come in pieces as they arrive, as views that the next `space()` makes invalid.
    """

    SMALL: ClassVar[int] = 4 << 10
    LARGE: ClassVar[int] = 256 << 10

    __slots__ = ("_accept", "_buffer", "_end", "_piece", "_rest", "_start", "_view", "_wanted")

    def __init__(self, accept: frozenset[int] = REPLIES) -> None:
        self._accept = accept
        self._wanted = 0
        self._start = self._end = 0
        self._rest = 0
        self._piece: Any = None
        self._buffer = bytearray(self.SMALL)
        self._view = memoryview(self._buffer)

    def space(self) -> memoryview:
        """Where the next octets go; never empty."""
        kept = self._end - self._start
        was_full = self._end == len(self._buffer) and len(self._buffer) < self.LARGE
        if was_full or self._wanted > len(self._buffer):
            larger = bytearray(max(self._wanted, self.LARGE))
            larger[:kept] = self._view[self._start : self._end]
            self._buffer, self._view = larger, memoryview(larger)
        elif self._start:
            self._view[:kept] = bytes(self._view[self._start : self._end])
        self._start, self._end = 0, kept
        return self._view[kept:]

    def filled(self, count: int) -> None:
        """So many octets have come."""
        self._end += count

    def next(self) -> Frame | None:
        """The next frame, or None where more octets are needed.

        Raises: ProtocolError.
        """
        if self._rest:
            return self._next_piece()
        have = self._end - self._start
        if have < HEADER.size:
            return None
        length, type = HEADER.unpack_from(self._buffer, self._start)
        if length > MAX_PAYLOAD:
            raise ProtocolError(f"a frame of {length} octets; at most {MAX_PAYLOAD} are allowed")
        if type not in self._accept:
            raise ProtocolError(f"a frame of type {type}, which does not belong here")
        if type in STREAMED:
            self._start += HEADER.size
            self._piece, self._rest = STREAMED[type], length
            return self._next_piece() if length else self._piece(b"")
        end = self._start + HEADER.size + length
        if end > self._end:
            self._wanted = HEADER.size + length
            return None
        start, self._start, self._wanted = self._start + HEADER.size, end, 0
        row = FIXED.get(type)
        if row is not None and row.size == length:
            return _make(type, *row.unpack_from(self._buffer, start))
        return decode(type, bytes(self._view[start:end]))

    def _next_piece(self) -> Frame | None:
        count = min(self._rest, self._end - self._start)
        if not count:
            return None
        start = self._start
        self._start += count
        self._rest -= count
        return self._piece(self._view[start : self._start])

    def take(self) -> bytes:
        """All octets that are left, where the connection goes on without frames."""
        left = bytes(self._view[self._start : self._end])
        self._start = self._end
        return left
