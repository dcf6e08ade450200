"""Where each sandbox stands: a row that is there before anything of the sandbox, and after all of it is gone."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from cloche.errors import InvalidRequest
from cloche.store import makers

if TYPE_CHECKING:
    from cloche.store.database import Database

State = Literal["creating", "running", "deleting", "ended"]
KEPT_SECONDS: Final = 30 * 86400.0
KEPT_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A sandbox as the store knows it."""

    id: str
    state: State
    engine: str
    name: str | None
    boot: str
    maker: str
    """The process that makes it, or deletes it at the moment."""
    is_bound: bool
    """It ends with the process that made it."""
    created: float
    ended: float | None = None
    reason: str | None = None
    """Why it ended, or is to end."""


class Boxes:
    """The table `boxes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self) -> None:
        """Have the file there, made anew where it was lost.

        Raises: EngineError.
        """
        self._database.query("SELECT 1")

    def intend(self, id: str, *, engine: str, name: str | None, is_bound: bool) -> None:
        """Before anything is made.

        Raises: InvalidRequest for a name that another one has, EngineError.
        """
        values = (id, engine, name, makers.boot(), makers.this_process(), is_bound, time.time())
        with self._database.transaction() as connection:
            try:
                connection.execute(
                    "INSERT INTO boxes (id, state, engine, name, boot, maker, is_bound, created) "
                    "VALUES (?, 'creating', ?, ?, ?, ?, ?, ?)",
                    values,
                )
            except sqlite3.IntegrityError:
                other = connection.execute(
                    "SELECT id FROM boxes WHERE name = ? AND state != 'ended'", (name,)
                ).fetchone()
                if other is None:
                    raise
                raise InvalidRequest(
                    f"name is {name!r}, which the sandbox {other['id']} has; remove that one, or take another name"
                ) from None

    def put(self, row: Row) -> None:
        """One that was found without a row, or after its end; a name that another has by now is left to that one."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO boxes (id, state, engine, name, boot, maker, is_bound, created) "
                "VALUES (?1, ?2, ?3, (SELECT ?4 WHERE NOT EXISTS "
                "(SELECT 1 FROM boxes WHERE name = ?4 AND state != 'ended')), ?5, ?6, ?7, ?8) "
                "ON CONFLICT (id) DO UPDATE SET state = excluded.state, maker = excluded.maker WHERE state = 'ended'",
                (row.id, row.state, row.engine, row.name, row.boot, row.maker, row.is_bound, row.created),
            )

    def mark_running(self, id: str) -> bool:
        """All of it is there; False where somebody has begun to delete it meanwhile."""
        return self._change("UPDATE boxes SET state = 'running' WHERE id = ? AND state = 'creating'", id)

    def begin_delete(self, id: str, reason: str) -> bool:
        """True for the one whose call ends it; whoever comes later is told that it was gone."""
        return self._change(
            "UPDATE boxes SET state = 'deleting', reason = ?, maker = ? "
            "WHERE id = ? AND state IN ('creating', 'running')",
            reason,
            makers.this_process(),
            id,
        )

    def mark_ended(self, id: str) -> None:
        """Nothing of it is left."""
        self._change("UPDATE boxes SET state = 'ended', ended = ? WHERE id = ? AND state != 'ended'", time.time(), id)

    def get(self, id: str) -> Row | None:
        """The row of that id."""
        found = self._database.query("SELECT * FROM boxes WHERE id = ?", (id,))
        return _row(found[0]) if found else None

    def named(self, name: str) -> Row | None:
        """The row of the sandbox that has that name and has not ended."""
        found = self._database.query("SELECT * FROM boxes WHERE name = ? AND state != 'ended'", (name,))
        return _row(found[0]) if found else None

    def present(self) -> list[Row]:
        """All that have not ended, the oldest first."""
        return [
            _row(row) for row in self._database.query("SELECT * FROM boxes WHERE state != 'ended' ORDER BY created")
        ]

    def forget_old(self) -> None:
        """Rows of those that ended long ago, or very many ago."""
        self._change("DELETE FROM boxes WHERE state = 'ended' AND ended < ?", time.time() - KEPT_SECONDS)
        self._change(
            "DELETE FROM boxes WHERE id IN "
            "(SELECT id FROM boxes WHERE state = 'ended' ORDER BY ended DESC LIMIT -1 OFFSET ?)",
            KEPT_ROWS,
        )

    def _change(self, sql: str, *values: object) -> bool:
        with self._database.transaction() as connection:
            return connection.execute(sql, values).rowcount > 0


def _row(row: sqlite3.Row) -> Row:
    values = dict(row)
    values["is_bound"] = bool(values["is_bound"])
    return Row(**values)
