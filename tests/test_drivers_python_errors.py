"""What a Python context says of an error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests import pythons

if TYPE_CHECKING:
    from pathlib import Path

    from tests.driver import Driver

ERRORS = {
    "an exception": ("1 / 0", "ZeroDivisionError", "division by zero"),
    "an exception without a text": ("raise KeyError", "KeyError", ""),
    "an exit": ("import sys\nsys.exit(3)", "SystemExit", "3"),
    "an exit without a status": ("exit()", "SystemExit", "None"),
    "a question": ("input()", "EOFError", "EOF when reading a line"),
    "a debugger": ("breakpoint()", "BdbQuit", ""),
    "no Python": ("1 +", "SyntaxError", "invalid syntax (<cell 1>, line 1)"),
    "no memory": ("raise MemoryError", "MemoryError", ""),
    "an error whose text raises": (
        "class A(Exception):\n    def __str__(self): 1 / 0\nraise A",
        "A",
        "<its str() raised ZeroDivisionError>",
    ),
    "a loop without an end": ("def f(): return f()\nf()", "RecursionError", "maximum recursion depth exceeded"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_has_its_name_and_its_value(case: str, python: Driver) -> None:
    code, name, value = ERRORS[case]
    error = python.run(code).error
    assert error
    assert (error["name"], error["value"]) == (name, value)


def test_a_traceback_shows_the_lines_of_the_code_and_no_others(python: Driver) -> None:
    python.run("def divide(a, b):\n    return a / b")
    error = python.run("x = 1\ndivide(x, 0)").error
    assert error
    lines = [line for line in error["traceback"].splitlines() if line.strip(" ~^")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "<cell 2>", line 2, in <module>',
        "    divide(x, 0)",
        '  File "<cell 1>", line 2, in divide',
        "    return a / b",
        "ZeroDivisionError: division by zero",
    ]


TRACES = {
    "a cause": (
        "try: 1 / 0\nexcept Exception as e: raise ValueError('no') from e",
        ["ZeroDivisionError: ", "direct cause", "ValueError: no"],
    ),
    "a context": (
        "try: 1 / 0\nexcept Exception: raise ValueError('no')",
        ["ZeroDivisionError: ", "During handling", "ValueError: no"],
    ),
    "a library": (
        "import json\njson.loads('{')",
        ['"<cell 1>", line 2, in <module>', "json.loads('{')", "in loads", "JSONDecodeError: "],
    ),
    "something awaited": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1 / 0\nawait f()",
        ['call last):\n  File "<cell 1>", line 5, in <module>\n    await f()', "in f\n    1 / 0"],
    ),
    "something shown": (
        "class A:\n    def _repr_html_(self): raise SystemExit\ndisplay(A())",
        ["line 3, in <module>\n    display(A())", "line 2, in _repr_html_\n"],
    ),
    "code of an exec": (
        "exec('1 +')",
        ['File "<cell 1>", line 1, in <module>', 'File "<string>", line 1', "SyntaxError: "],
    ),
    "no Python": ("x = 1\nx = = 2", ['  File "<cell 1>", line 2\n    x = = 2\n', "^\nSyntaxError: invalid syntax\n"]),
    "no end": ("def f(): return f()\nf()", ["more times]\nRecursionError: "]),
}


@pytest.mark.parametrize("case", TRACES)
def test_a_traceback_tells_of(case: str, python: Driver) -> None:
    code, wanted = TRACES[case]
    error = python.run(code).error
    assert error
    trace, place = error["traceback"], 0
    for text in wanted:
        place = trace.find(text, place)
        assert place >= 0, trace
    assert "cloche" not in trace
    assert "\x1b" not in trace
    if case != "code of an exec":
        assert ("Traceback" in trace) == (case != "no Python")


def test_a_group_of_exceptions_shows_each(tmp_path: Path) -> None:
    with pythons.start(sys.executable, tmp_path) as driver:
        error = driver.run("raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])").error
    assert error
    assert error["value"] == "both (2 sub-exceptions)"
    assert "| ValueError: one\n" in error["traceback"]
    assert "| TypeError: two\n" in error["traceback"]


LONG = {
    "a long value": "raise ValueError('x' * 1_000_000)",
    "a long line": "x = '" + "x" * 200_000 + "'; 1 / 0",
    "many frames": (
        "import sys\nsys.setrecursionlimit(9000)\n"
        "def f(n): return g(n - 1) if n else 1 / 0\ndef g(n): return f(n - 1) if n else 1 / 0\nf(7000)"
    ),
}


@pytest.mark.parametrize("case", LONG)
def test_of_what_is_very_long_the_middle_is_left_out(case: str, python: Driver) -> None:
    error = python.run(LONG[case]).error
    assert error
    assert len(error["value"]) < 70_000
    assert len(error["traceback"]) < 70_000
    assert "characters are left out" in error["traceback"]


def test_a_traceback_that_cannot_be_made_is_a_line(python: Driver) -> None:
    python.run("import traceback\ntraceback.TracebackException = None")
    error = python.run("1 / 0").error
    assert error
    assert error["traceback"] == "ZeroDivisionError: division by zero\n"


def test_colours_that_the_environment_asks_for_are_not_in_it(tmp_path: Path) -> None:
    newest = list(pythons.INTERPRETERS.values())[-1]
    with pythons.start(newest, tmp_path, FORCE_COLOR="1") as driver:
        error = driver.run("1 / 0").error
    assert error
    assert "\x1b" not in error["traceback"]
