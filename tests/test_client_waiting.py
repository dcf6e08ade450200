"""In a thread, or in place."""

from __future__ import annotations

import asyncio
import threading

from cloche.client.waiting import in_place, in_thread


def test_what_blocks_runs_in_another_thread() -> None:
    assert asyncio.run(in_thread(threading.get_ident)) != threading.get_ident()


def test_or_here_where_nobody_waits() -> None:
    assert in_place(threading.get_ident) == threading.get_ident()
