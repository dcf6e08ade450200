"""The file: shared, migrated, refused, set aside."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cloche.errors import EngineError
from cloche.store.database import FILE, MIGRATIONS, Database

if TYPE_CHECKING:
    from pathlib import Path

INSERT = "INSERT INTO boxes (id, state, engine, boot, maker, is_bound, created) VALUES (?, 'running', '', '', '', 0, 0)"


def test_what_is_written_is_there_for_another_connection(tmp_path: Path) -> None:
    with Database(tmp_path).transaction() as connection:
        connection.execute(INSERT, ("a",))
    assert [row["id"] for row in Database(tmp_path).query("SELECT id FROM boxes")] == ["a"]


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path)

    def write_half() -> None:
        with database.transaction() as connection:
            connection.execute(INSERT, ("a",))
            connection.execute(INSERT, ("a",))

    with pytest.raises(sqlite3.IntegrityError):
        write_half()
    assert database.query("SELECT id FROM boxes") == []


def test_many_threads_write_at_once_and_none_is_lost(tmp_path: Path) -> None:
    databases = [Database(tmp_path) for _ in range(4)]

    def write(number: int) -> None:
        with databases[number % 4].transaction() as connection:
            connection.execute(INSERT, (str(number),))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(write, range(200)))
    assert len(databases[0].query("SELECT id FROM boxes")) == 200


def test_a_connection_is_not_used_behind_a_fork(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\nfrom cloche.store.database import Database\n"
        "d = Database(pathlib.Path(sys.argv[1])); d.query('SELECT 1'); first = d._connection\n"
        "pid = os.fork()\nif pid == 0:\n d.query('SELECT 1'); os._exit(d._connection is first)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_a_file_of_a_newer_version_is_refused_and_stays(tmp_path: Path) -> None:
    Database(tmp_path).query("SELECT 1")
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(EngineError, match="written by a newer Cloche"):
        Database(tmp_path).query("SELECT 1")
    assert [name for name in os.listdir(tmp_path) if "broken" in name] == []


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_set_aside_and_another_made(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert Database(tmp_path).query("SELECT id FROM boxes") == []
    assert any(".broken-" in name for name in os.listdir(tmp_path))


def test_a_page_that_is_destroyed_is_told_and_the_next_try_has_a_new_file(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.transaction() as connection:
        connection.executemany(INSERT, [(f"{number:020}",) for number in range(2000)])
        connection.execute(
            "INSERT INTO boxes SELECT id || 'x', state, engine, name, boot, maker, 0, 0, 0, '' FROM boxes"
        )
    database.query("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(200_000))
    with pytest.raises(EngineError, match="can't be used"):
        database.query("SELECT * FROM boxes ORDER BY created")
    assert database.query("SELECT id FROM boxes") == []


def test_a_file_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.query("SELECT 1")
    (tmp_path / FILE).unlink()
    assert database.query("SELECT id FROM boxes") == []


def test_a_folder_that_is_not_there_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"nowhere.*writable"):
        Database(tmp_path / "nowhere").query("SELECT 1")
