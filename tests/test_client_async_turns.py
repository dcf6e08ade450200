"""Turns in a context, with asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cloche import AsyncSandbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

SLEEP = "print('begun', flush=True)\nimport time\ntime.sleep(60)"


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> Path:
    return home


async def in_a_box(use: Callable[[AsyncSandbox], Awaitable[None]]) -> None:
    async with await AsyncSandbox.create() as box:
        await use(box)


def test_pieces_in_several_contexts_run_at_once() -> None:
    async def use(box: AsyncSandbox) -> None:
        contexts = [await box.contexts.create() for _ in range(3)]
        # Each waits until the others have begun as well.
        code = (
            "import glob, time\nopen(f'here-{n}', 'w').close()\nwhile len(glob.glob('here-*')) < 3: time.sleep(0.01)\nn"
        )
        results = await asyncio.gather(
            *(box.run_code(f"n = {number}\n{code}", context=context) for number, context in enumerate(contexts))
        )
        assert [result.text for result in results] == ["0", "1", "2"]

    asyncio.run(in_a_box(use))


def test_a_task_that_is_cancelled_interrupts_its_piece() -> None:
    async def use(box: AsyncSandbox) -> None:
        await box.run_code("kept = 1")
        begun = asyncio.Event()
        task = asyncio.create_task(box.run_code(SLEEP, on_stdout=lambda _: begun.set()))
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        result = await asyncio.wait_for(box.run_code("kept"), 20)
        assert (result.text, result.stdout) == ("1", "")

    asyncio.run(in_a_box(use))


def test_a_callback_that_raises_ends_the_piece_and_is_raised() -> None:
    def raise_it(_: object) -> None:
        raise RuntimeError("of the callback")

    async def use(box: AsyncSandbox) -> None:
        with pytest.raises(RuntimeError, match="of the callback"):
            await box.run_code("1\ndisplay(2)", on_result=raise_it)
        assert (await box.run_code("3")).text == "3"

    asyncio.run(in_a_box(use))
