"""Code that awaits: it runs in one loop per context, so that tasks go on while later code awaits."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType
    from typing import Any

COROUTINE = 0x80


class Tasks:
    """The loop of a context, and the task that is its running code."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.task: asyncio.Task[Any] | None = None
        self.is_cancelled = False
        self.trace: TracebackType | None = None

    def run(self, codes: list[CodeType], space: dict[str, Any]) -> Any:
        """The value of the last one."""
        if self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        self.is_cancelled = False
        self.task = task = self.loop.create_task(self.run_codes(codes, space))
        try:
            return self.loop.run_until_complete(task)
        except asyncio.CancelledError:
            if not self.is_cancelled:
                raise
            raise KeyboardInterrupt().with_traceback(self.trace) from None
        finally:
            self.end(task)
            self.trace = None

    async def run_codes(self, codes: list[CodeType], space: dict[str, Any]) -> Any:
        value = None
        try:
            for code in codes:
                value = eval(code, space)
                if code.co_flags & COROUTINE:
                    value = await value
        except asyncio.CancelledError as error:
            # Before Python 3.11 nobody else tells where the code was waiting.
            self.trace = error.__traceback__
            raise
        return value

    def end(self, task: asyncio.Task[Any]) -> None:
        """An interrupt of another task may have left this one waiting."""
        if not (task.done() or self.loop.is_closed()):
            task.cancel()
            self.loop.run_until_complete(asyncio.wait([task]))
        if task.done() and not task.cancelled():
            task.exception()  # so that nobody complains that it was never taken
        self.task = None

    def take_interrupt(self, frame: FrameType) -> bool:
        """Whether the task is cancelled: where the loop itself runs, raising would leave it broken."""
        if self.task is None or self.task.done():
            return False
        if str(frame.f_globals.get("__name__")).split(".")[0] not in ("asyncio", "selectors"):
            return False
        self.is_cancelled = True
        self.loop.call_soon_threadsafe(self.task.cancel)
        return True
