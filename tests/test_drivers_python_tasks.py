"""Code that awaits in a Python context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pythons import wait_until_asleep

if TYPE_CHECKING:
    from tests.driver import Driver

START = "import asyncio\nasync def later(value): await asyncio.sleep(0.001); return value"
AWAITS = {
    "a value": "await later(5)",
    "a statement before it": "x = await later(4)\nx + 1",
    "a loop": "import contextlib\nasync def count():\n    for n in range(6): yield n\nasync for n in count(): pass\nn",
    "a context": (
        "import contextlib\n@contextlib.asynccontextmanager\nasync def five(): yield 5\nasync with five() as n: pass\nn"
    ),
    "a comprehension": "[await later(n) for n in range(6)][-1]",
    "a loop of its own": "asyncio.run(later(5))",
    "a loop of its own, by another way": "asyncio.new_event_loop().run_until_complete(later(5))",
    "several at once": "(await asyncio.gather(later(4), later(5)))[1]",
}


@pytest.mark.parametrize("case", AWAITS)
def test_code_awaits(case: str, python: Driver) -> None:
    python.run(START)
    reply = python.run(AWAITS[case])
    assert reply.error is None
    assert reply.text == "5"


@pytest.mark.parametrize(
    "code", ["task = asyncio.create_task(later(5))", "await later(1)\ntask = asyncio.ensure_future(later(5))"]
)
def test_a_task_goes_on_while_later_code_awaits(code: str, python: Driver) -> None:
    python.run(START)
    assert python.run(code).error is None
    assert python.run("1 + 1").text == "2"
    assert python.run("await later(1)\nawait task").text == "5"


def test_the_loop_is_the_same_in_all_code(python: Driver) -> None:
    python.run(START)
    python.run("await later(1)\nloop = asyncio.get_running_loop()")
    assert python.run("await later(1)\nloop is asyncio.get_running_loop()").text == "True"


def test_asyncio_is_imported_only_by_code_that_awaits(python: Driver) -> None:
    assert python.run("import sys\n'asyncio' in sys.modules").text == "False"


def test_an_interrupt_lets_code_clean_up(python: Driver) -> None:
    python.run(START)
    code = "try:\n    print('now')\n    await asyncio.sleep(60)\nfinally:\n    await later(1)\n    print('clean')"
    reply = python.run(code, until="begun")
    while "now" not in reply.stdout:
        reply.stdout += python.collect_output()
    wait_until_asleep(python)
    python.interrupt()
    reply = python.collect("done")
    assert reply.stdout == "clean\n"
    assert reply.error
    assert reply.error["name"] == "KeyboardInterrupt"
    assert "    await asyncio.sleep(60)\n" in reply.error["traceback"]
    assert python.run("await later(5)").text == "5"


def test_what_was_cancelled_by_code_itself_is_an_error_of_that_name(python: Driver) -> None:
    error = python.run("import asyncio\nasyncio.current_task().cancel()\nawait asyncio.sleep(1)").error
    assert error
    assert error["name"] == "CancelledError"


def test_an_exit_of_a_task_leaves_the_loop_usable(python: Driver) -> None:
    python.run(START)
    error = python.run("await later(1)\nraise SystemExit(3)").error
    assert error
    assert error["value"] == "3"
    reply = python.run("await later(5)")
    assert (reply.text, reply.stderr) == ("5", "")
