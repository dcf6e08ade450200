"""Sets right what was left behind: boxes half made or half deleted, ended, of another boot, or without a row."""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cloche import settings
from cloche.engines import ENGINES, engine_named
from cloche.engines.folders import remove_folder
from cloche.errors import ClocheError, EngineError
from cloche.sandboxes import boxes, records
from cloche.sandboxes.states import Found, judge
from cloche.store import makers
from cloche.store.boxes import Row
from cloche.store.database import STAMP

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

EVERY_SECONDS: Final = 60.0
THREADS: Final = 8
UNKNOWN_ENGINE: Final = "embedded:crun"
"""It removes what any OCI runtime leaves."""
_ID: Final = re.compile(r"[a-z0-9]{20}")


def sweep_now_and_then() -> bool:
    """True where it was done: nobody had for a minute, or since the machine was started or boxes.db was made.

    Raises: EngineError.
    """
    try:
        return _sweep_where_it_is_time()
    except OSError as error:
        raise EngineError(f"the sandboxes in {str(settings.home())!r} can't be looked through: {error}") from error


def _sweep_where_it_is_time() -> bool:
    boxes.rows().open()
    stamp = settings.home() / STAMP
    try:
        is_fresh = 0 <= time.time() - stamp.stat().st_mtime < EVERY_SECONDS
        if is_fresh and stamp.read_text(encoding="ascii") == makers.boot():
            return False
    except (FileNotFoundError, ValueError):
        pass
    sweep()
    return True


def sweep() -> dict[str, str]:
    """Removes what no longer is a sandbox; gives the reason of each that ended. Any number of processes may call it."""
    home = settings.home()
    with _alone(home / "sweep.lock") as is_first:
        if not is_first:
            return {}
        _give_rows(home)
        doomed = {row: reason for row in boxes.rows().present() if (reason := _judge(row))}
        # Most starts of Cloche sweep nothing, and need not pay for this.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREADS) as threads:
            ended = list(threads.map(_end, doomed, doomed.values()))
        boxes.rows().forget_old()
        _stamp(home)
    return {row.id: reason for (row, reason), done in zip(doomed.items(), ended, strict=True) if done}


def _judge(row: Row) -> str | None:
    same_boot = row.boot == makers.boot()
    box = boxes.box_of(row.id, row.engine)
    is_known = row.engine in ENGINES
    is_alive = same_boot and is_known and bool(box.state) and engine_named(row.engine).is_alive(box)
    return judge(
        Found(
            state=row.state,
            is_bound=row.is_bound,
            same_boot=same_boot,
            maker_is_alive=same_boot and makers.is_alive(row.maker),
            keeper_is_alive=is_alive,
            mark=engine_named(row.engine).why_ended(box) if is_known and same_boot and not is_alive else "killed",
            reason=row.reason,
        )
    )


def _end(row: Row, reason: str) -> bool:
    """One that resists is tried again the next time, and holds up no other."""
    try:
        boxes.end(boxes.box_of(row.id, row.engine), reason)
    except (ClocheError, OSError):
        return False
    return True


def _give_rows(home: Path) -> None:
    """A folder without a row, as after the loss of boxes.db, gets one: it is judged like all others then."""
    # In this order: whoever makes a folder has made its row before.
    names = os.listdir(boxes.boxes_folder())
    known = {row.id for row in boxes.rows().present()}
    for name in names:
        if name in known or not _ID.fullmatch(name):
            continue
        folder = home / "boxes" / name
        if records.is_copy(folder):
            # The sandbox itself is another data folder's.
            remove_folder(folder)
            continue
        record = records.load(folder)
        boxes.rows().put(
            Row(
                id=name,
                state="running" if record else "deleting",
                engine=record.box.engine if record else UNKNOWN_ENGINE,
                name=record.spec.name if record else None,
                boot=makers.boot(),
                maker="0:",
                is_bound=False,
                created=record.created if record else time.time(),
            )
        )


@contextmanager
def _alone(path: Path) -> Generator[bool]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _stamp(home: Path) -> None:
    scratch = home / f"{STAMP}.{os.getpid()}"
    scratch.write_text(makers.boot(), encoding="ascii")
    os.replace(scratch, home / STAMP)
