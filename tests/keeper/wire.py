"""A second, independent implementation of docs/protocol.md, just large enough for these tests."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

RUN, ATTACH, INPUT, SIGNAL, PROCESSES, USAGE, PORTS, CONNECT, EGRESS = range(1, 10)
WATCH, READ, WRITE, STAT, LIST, MAKE, MOVE, REMOVE = range(10, 18)
STDIN, STDIN_END, RESIZE = 32, 33, 34
STARTED, STDOUT, STDERR, GAP, EXIT, OK, ERROR, DATA, END = range(64, 73)
ENTRY, EVENT, PROCESS, PORT, USAGE_IS, PEER = range(73, 79)

PATH = b"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEADLINE = 20.0

Frame = tuple[int, bytes]


def octets(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def items(values: Sequence[bytes]) -> bytes:
    return struct.pack("<I", len(values)) + b"".join(map(octets, values))


def frame(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<IB", len(payload), kind) + payload


def request(kind: int, payload: bytes = b"") -> bytes:
    return frame(kind, b"\x01" + payload)


class KeeperError(Exception):
    """An ERROR frame."""

    def __init__(self, payload: bytes) -> None:
        self.code = int.from_bytes(payload[:4], "little")
        self.message = payload[8:].decode()
        super().__init__(self.code, self.message)


@dataclass
class Exit:
    code: int
    signal: int
    flags: int
    wall_ns: int
    user_us: int
    system_us: int
    peak_bytes: int
    dropped: int
    offset: int


@dataclass
class Result:
    pid: int = 0
    offset: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    gaps: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Octets received before it, and its size."""
    exit: Exit | None = None

    @property
    def ended(self) -> Exit:
        assert self.exit is not None
        return self.exit


class Connection:
    """One connection, one operation."""

    def __init__(self, path: Path, first: bytes = b"") -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(str(path))
        self.pending = b""
        if first:
            self.socket.sendall(first)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, size: int) -> bytes:
        parts: list[bytes] = [self.pending]
        have = len(self.pending)
        while have < size:
            part = self.socket.recv(1 << 20)
            if not part:
                raise EOFError(b"".join(parts))
            parts.append(part)
            have += len(part)
        data = b"".join(parts)
        self.pending = data[size:]
        return data[:size]

    def next(self) -> Frame:
        """The next frame; raises KeeperError for ERROR, EOFError at the end."""
        size, kind = struct.unpack("<IB", self.read(5))
        payload = self.read(size)
        if kind == ERROR:
            raise KeeperError(payload)
        return kind, payload

    def expect(self, kind: int) -> bytes:
        found, payload = self.next()
        assert found == kind, (found, payload)
        return payload

    def frames(self) -> Iterator[Frame]:
        """All frames up to END."""
        while True:
            found = self.next()
            if found[0] == END:
                return
            yield found

    def started(self) -> int:
        return struct.unpack("<IQQ", self.expect(STARTED))[0]

    def collect(self) -> Result:
        """What a RUN or ATTACH sends, up to EXIT or END."""
        result = Result()
        while True:
            kind, payload = self.next()
            if kind == STARTED:
                result.pid, _, result.offset = struct.unpack("<IQQ", payload)
            elif kind == STDOUT:
                result.stdout += payload
            elif kind == STDERR:
                result.stderr += payload
            elif kind == GAP:
                position = len(result.stdout) + len(result.stderr)
                result.gaps.append((position, struct.unpack("<Q", payload)[0]))
            elif kind == EXIT:
                result.exit = Exit(*struct.unpack("<iIIQQQQQQ", payload))
                return result
            else:
                assert kind == END
                return result


@dataclass
class Entry:
    kind: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    inode: int
    links: int
    name: bytes
    target: bytes


def parse_entry(payload: bytes) -> Entry:
    fixed = struct.unpack_from("<BIIIQqQI", payload)
    at = struct.calcsize("<BIIIQqQI")
    size = int.from_bytes(payload[at : at + 4], "little")
    name = payload[at + 4 : at + 4 + size]
    return Entry(chr(fixed[0]), *fixed[1:], name, payload[at + 8 + size :])


class Client:
    """Every request, as the given user."""

    def __init__(self, path: Path, uid: int = 0, gid: int = 0) -> None:
        self.path = path
        self.uid = uid
        self.gid = gid

    @property
    def user(self) -> bytes:
        return struct.pack("<II", self.uid, self.gid)

    def open(self, first: bytes = b"") -> Connection:
        return Connection(self.path, first)

    def run_frame(
        self,
        *argv: str | bytes,
        flags: int = 0,
        time_limit: float = 0,
        output_limit: int = 0,
        rows: int = 24,
        cols: int = 80,
        cwd: bytes = b"",
        tag: bytes = b"",
        env: Sequence[bytes] = (PATH,),
    ) -> bytes:
        words = [word.encode() if isinstance(word, str) else word for word in argv]
        fixed = struct.pack("<QQHH", int(time_limit * 1000), output_limit, rows, cols)
        rest = octets(cwd) + octets(tag) + items(words) + items(env)
        return request(RUN, struct.pack("<I", flags) + self.user + fixed + rest)

    def start(self, *argv: str | bytes, **options: Any) -> Connection:
        return self.open(self.run_frame(*argv, **options))

    def run(self, *argv: str | bytes, **options: Any) -> Result:
        with self.start(*argv, **options) as connection:
            return connection.collect()

    def shell(self, script: str, **options: Any) -> Result:
        return self.run("sh", "-c", script, **options)

    def attach(self, pid: int, offset: int = 0, *, follow: bool = False) -> Connection:
        return self.open(request(ATTACH, struct.pack("<IIQ", int(follow), pid, offset)))

    def input(self, pid: int, data: bytes = b"", kind: int = 0, rows: int = 0, cols: int = 0) -> None:
        payload = struct.pack("<IBHH", pid, kind, rows, cols) + octets(data)
        self.ask(INPUT, payload)

    def signal(self, pid: int, number: int, scope: int = 0) -> None:
        self.ask(SIGNAL, struct.pack("<IIB", pid, number, scope))

    def ask(self, kind: int, payload: bytes = b"") -> int:
        with self.open(request(kind, payload)) as connection:
            return struct.unpack("<Q", connection.expect(OK))[0]

    def every(self, kind: int, payload: bytes = b"") -> list[bytes]:
        with self.open(request(kind, payload)) as connection:
            return [payload for _, payload in connection.frames()]

    def read(self, path: bytes, offset: int = 0, limit: int = 0) -> bytes:
        payload = self.user + struct.pack("<QQ", offset, limit) + octets(path)
        return b"".join(self.every(READ, payload))

    def write(self, path: bytes, *chunks: bytes, flags: int = 0, mode: int = 0) -> int:
        payload = struct.pack("<I", flags) + self.user + struct.pack("<I", mode) + octets(path)
        with self.open(request(WRITE, payload)) as connection:
            for chunk in chunks:
                connection.send(frame(DATA, chunk))
            connection.send(frame(END))
            return struct.unpack("<Q", connection.expect(OK))[0]

    def stat(self, path: bytes, flags: int = 0) -> Entry:
        with self.open(request(STAT, struct.pack("<I", flags) + self.user + octets(path))) as connection:
            return parse_entry(connection.expect(ENTRY))

    def list(self, path: bytes, depth: int = 1) -> list[Entry]:
        payload = self.user + struct.pack("<I", depth) + octets(path)
        return [parse_entry(entry) for entry in self.every(LIST, payload)]

    def make(self, path: bytes, kind: int = 1, target: bytes = b"", flags: int = 0, mode: int = 0) -> int:
        fixed = struct.pack("<I", flags) + self.user + struct.pack("<IB", mode, kind)
        return self.ask(MAKE, fixed + octets(path) + octets(target))

    def move(self, source: bytes, destination: bytes, flags: int = 0) -> int:
        fixed = struct.pack("<I", flags) + self.user
        return self.ask(MOVE, fixed + octets(source) + octets(destination))

    def remove(self, path: bytes, flags: int = 0) -> int:
        return self.ask(REMOVE, struct.pack("<I", flags) + self.user + octets(path))

    def watch(self, path: bytes, flags: int = 0) -> Connection:
        connection = self.open(request(WATCH, struct.pack("<I", flags) + self.user + octets(path)))
        try:
            connection.expect(OK)
        except BaseException:
            connection.socket.close()
            raise
        return connection


def wait_until(condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    """Until `condition()` holds."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"not within {deadline} s: {what}"
        time.sleep(0.005)
