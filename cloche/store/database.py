"""The file boxes.db: opened once by each process, shared by any number of them.

It says what is the case on this machine since it was booted: no box outlives that. So nothing is
flushed to the disk, which would take as long as making a box, and where the file does not survive
a crash of the machine it is made anew.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import zlib
from contextlib import closing, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cloche.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

FILE: Final = "boxes.db"
STAMP: Final = "swept"
"""The file beside it that says when all of its rows were last gone through."""
WAIT_SECONDS: Final = 20.0
MIGRATIONS: Final = (
    """
    CREATE TABLE boxes (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        engine TEXT NOT NULL,
        name TEXT,
        boot TEXT NOT NULL,
        maker TEXT NOT NULL,
        is_bound INTEGER NOT NULL,
        created REAL NOT NULL,
        ended REAL,
        reason TEXT
    );
    CREATE UNIQUE INDEX names ON boxes (name) WHERE state != 'ended';
    CREATE INDEX states ON boxes (state);
    """,
)
"""Each takes the file from one version to the next; `user_version` says how many were applied."""


class Database:
    """One connection, used by one thread at a time."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = 0

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All of what is done in it happens, or nothing.

        Raises: EngineError; what the caller raises passes through.
        """
        with self._lock:
            with self._told():
                connection = self._open()
                connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                with self._told():
                    connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What is there.

        Raises: EngineError.
        """
        with self._lock, self._told():
            return self._open().execute(sql, values).fetchall()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        # A connection must not be used behind a fork.
        if self._connection is None or self._pid != os.getpid() or not self.path.exists():
            self._connection = self._connect()
            self._pid = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        try:
            return _open_file(self.path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            self._set_aside()
            return _open_file(self.path)

    def _set_aside(self) -> None:
        """What is no database stays for who wants to look at it; the boxes are found again by their folders."""
        mark = f"{time.time_ns():x}"
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.rename(f"{self.path}{suffix}", f"{self.path}.broken-{mark}{suffix}")

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if not isinstance(error, sqlite3.OperationalError) and isinstance(error, sqlite3.DatabaseError):
                self.close()
                self._set_aside()
            raise EngineError(
                f"the state of the sandboxes in {str(self.path)!r} can't be used: {error}; see that the folder is "
                "writable, its disk not full, and nobody holds the file locked"
            ) from error


def has_no_room(error: EngineError) -> bool:
    """True where the file can't be written as its disk is full."""
    cause = error.__cause__
    # A full disk is told in several ways, by what was to be written.
    codes = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF in codes


@cache
def database_in(home: Path) -> Database:
    """That of a data folder; the same object each time."""
    return Database(home)


def _open_file(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        _migrate(connection, path)
        _refuse_copy(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_copy(connection: sqlite3.Connection, path: Path) -> None:
    """What it says is of the sandboxes of one folder: in a copy of that, none of them is its own.

    Raises: sqlite3.DatabaseError.
    """
    found, own = _number(connection, "application_id"), _mark_of(path.parent)
    if found == 0:
        connection.execute(f"PRAGMA application_id = {own}")
    elif found != own:
        raise sqlite3.DatabaseError(f"{str(path)!r} is a copy of another folder's")


def _mark_of(folder: Path) -> int:
    """Another one for a copy, and the same one where the folder was moved."""
    found = folder.stat()
    return zlib.crc32(f"{found.st_dev}:{found.st_ino}".encode()) & 0x7FFFFFFF or 1


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    # Nobody has gone through the rows of this one.
    path.with_name(STAMP).unlink(missing_ok=True)
    with closing(connection.execute("BEGIN IMMEDIATE")):
        version = _version(connection)
    try:
        if version > len(MIGRATIONS):
            raise EngineError(
                f"{str(path)!r} was written by a newer Cloche (version {version} of its tables; this one knows "
                f"{len(MIGRATIONS)}): use that one, or name another folder in CLOCHE_HOME"
            )
        for step in MIGRATIONS[version:]:
            for statement in filter(str.strip, step.split(";")):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return _number(connection, "user_version")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
