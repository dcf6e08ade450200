# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""One sandbox's keeper: requests, replies, and what it means when there are none."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, Self, TypeVar

from cloche.client.refusals import refuse_any
from cloche.client.results import describe_limit
from cloche.client.waiting import in_place
from cloche.engines import engine_named
from cloche.errors import ClocheError, ProtocolError, SandboxError, SandboxNotFound
from cloche.link import frames
from cloche.link.connection import Connection
from cloche.sandboxes import boxes
from cloche.sandboxes.states import REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from cloche.engines.base import Counters, EngineUsage, Events
    from cloche.sandboxes.records import Record

CONNECT_SECONDS: Final = 10.0
ENDING_SECONDS: Final = 2.0
REPLY_SECONDS: Final = 30.0
MOST_OCTETS: Final = 256 << 20
"""What a list of replies may take in all: a million files with long names."""
F = TypeVar("F", bound=frames.Frame)


class Link:
    """Requests to one keeper. Each is a connection of its own: any number at once, from any thread."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.engine = engine_named(record.box.engine)
        self.address = str(record.box.socket)
        self._counters: Counters | None = None

    def start(self, request: frames.Frame, refusal: Callable[[frames.Error], ClocheError] = refuse_any) -> Operation:
        """An operation, to be entered with `with`."""
        return Operation(self, request, refusal)

    def ask(
        self,
        request: frames.Frame,
        expected: type[F],
        refusal: Callable[[frames.Error], ClocheError] = refuse_any,
        timeout: float = REPLY_SECONDS,
    ) -> F:
        """One request, one reply."""
        with self.start(request, refusal) as operation:
            return operation.expect(expected, timeout)

    def collect(
        self,
        request: frames.Frame,
        expected: type[F],
        refusal: Callable[[frames.Error], ClocheError] = refuse_any,
    ) -> list[F]:
        """One request, any number of replies and END."""
        found: list[F] = []
        weight = 0
        with self.start(request, refusal) as operation:
            while True:
                frame = operation.receive(REPLY_SECONDS)
                if isinstance(frame, frames.End):
                    return found
                weight += frames.weigh(frame)
                if not isinstance(frame, expected) or weight > MOST_OCTETS:
                    raise operation.broken(f"{frame.NAME} was not expected after {len(found)} replies")
                found.append(frame)

    def events(self) -> Events:
        """The kernel's counters; fast enough to be read in place."""
        if self._counters is None:
            self._counters = self.engine.counters(self.record.box)
        return self._counters.read()

    def usage(self) -> EngineUsage:
        """What the kernel accounts to the sandbox."""
        return in_place(self.engine.usage, self.record.box)

    def is_alive(self) -> bool:
        """True while its keeper runs."""
        return in_place(self.engine.is_alive, self.record.box)

    def delete(self) -> bool:
        """End the sandbox; False where it was gone already."""
        return in_place(boxes.delete, self.record)

    def explain(self, error: Exception) -> ClocheError:
        """What it means that the connection failed; the sandbox is ended where its keeper broke the protocol."""
        if isinstance(error, ProtocolError):
            self.delete()
            return ProtocolError(f"{error.message}; the sandbox {self.record.box.id} has been ended for it")
        return in_place(self._explain, error)

    def _explain(self, error: Exception) -> ClocheError:
        box, limits = self.record.box, self.record.spec.limits
        if self._is_there(error):
            return SandboxError(f"the keeper of sandbox {box.id} does not answer as it should: {error or 'time is up'}")
        row = boxes.rows().get(box.id)
        if row is not None and row.reason is not None:
            return SandboxNotFound(f"the sandbox {box.id} has ended: {REASONS.get(row.reason, row.reason)}")
        if not box.folder.exists():
            return SandboxNotFound(f"the sandbox {box.id} has been deleted")
        reason = self.engine.why_ended(box)
        if reason == "out_of_memory":
            return SandboxError(
                f"the sandbox {box.id} has ended: {describe_limit('memory_mb', limits)}, and make another"
            )
        return SandboxError(f"the sandbox {box.id} has ended: {REASONS[reason]}; make another")

    def _is_there(self, error: Exception) -> bool:
        """A keeper that hung up may be about to be gone."""
        deadline = monotonic() + (ENDING_SECONDS if isinstance(error, ConnectionError) else 0)
        while self.engine.is_alive(self.record.box):
            if monotonic() > deadline:
                return True
            sleep(0.005)
        return False


class Operation:
    """One request on a connection of its own, and what follows on it."""

    __slots__ = ("_connection", "_link", "_refusal", "_request")

    _connection: Connection

    def __init__(self, link: Link, request: frames.Frame, refusal: Callable[[frames.Error], ClocheError]) -> None:
        self._link = link
        self._request = request
        self._refusal = refusal

    def __enter__(self) -> Self:
        data = frames.encode(self._request)
        try:
            self._connection = Connection.open(self._link.address, CONNECT_SECONDS)
        except OSError as error:
            raise self._link.explain(error) from error
        try:
            self._connection.send(data)
        except OSError as error:
            self._connection.close()
            raise self._link.explain(error) from error
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def receive(self, timeout: float | None) -> frames.Frame:
        """The next frame, but ERROR, which is raised.

        Raises: SandboxError, or what the operation's refusal makes of ERROR.
        """
        try:
            frame = self._connection.receive(timeout)
        except (OSError, ProtocolError) as error:
            raise self._link.explain(error) from error
        if isinstance(frame, frames.Error):
            raise self._refusal(frame)
        return frame

    def receive_within(self, seconds: float | None) -> frames.Frame:
        """The next frame, where the caller is not ready to wait for ever.

        Raises: TimeoutError, and what `receive` raises.
        """
        try:
            return self.receive(seconds)
        except SandboxError as error:
            if isinstance(error.__cause__, TimeoutError) and seconds is not None:
                raise TimeoutError(f"nothing happened for {seconds:g} s") from None
            raise

    def expect(self, expected: type[F], timeout: float | None) -> F:
        """The next frame, which must be of that class."""
        frame = self.receive(timeout)
        if not isinstance(frame, expected):
            raise self.broken(f"{frame.NAME} came where {expected.NAME} was expected")
        return frame

    def broken(self, message: str) -> ClocheError:
        """The error to raise where the keeper sent what makes no sense; ends the sandbox."""
        return self._link.explain(ProtocolError(message))

    def send(self, frame: frames.Frame) -> bool:
        """One more frame; False where the keeper has hung up: `receive` tells why.

        Raises: SandboxError.
        """
        try:
            return self._connection.send(frames.encode(frame))
        except OSError as error:
            raise self._link.explain(error) from error

    def feed(self, pieces: Iterable[frames.Frame]) -> None:
        """Send these while receiving."""
        self._connection.feed(map(frames.encode, pieces))

    @property
    def connection(self) -> Connection:
        """The connection itself, for the raw octets that follow."""
        return self._connection

    def hang_up(self) -> None:
        """End the operation from here; may be called from another thread or task."""
        self._connection.close()
