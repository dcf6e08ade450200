"""Calling what blocks: in a thread where others must go on, here where nobody waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call it in a thread of its own."""
    from asyncio import to_thread

    return await to_thread(function, *args, **kwargs)


async def pause(seconds: float) -> None:
    """Let others go on for a while."""
    from asyncio import sleep

    await sleep(seconds)


def pause_in_place(seconds: float) -> None:
    """Wait for a while."""
    from time import sleep

    sleep(seconds)


def in_place(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call it, and wait."""
    return function(*args, **kwargs)
