"""Commands of the shell and magics in a Python context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.driver import Driver

UNTOUCHED = {
    "a string": "'''\n!ls\n%cd /\n%%bash\n'''",
    "a remainder": "(17\n%5)",
    "a continued line": "17 \\\n%5",
    "a format": "'%d' % 5",
    "an argument": "len(\n'%time'\n)",
    "a comment": "# !ls\n# %cd /\n5",
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_what_is_python_stays_what_it_is(case: str, python: Driver) -> None:
    code = UNTOUCHED[case]
    assert python.run(code).text == repr(eval(code.replace("# !ls\n# %cd /\n", "")))


MAGICS = {
    "a command": ("!echo a; echo b >&2", "a\n", "b\n", None),
    "a command after code": ("x = 1\n!echo $x {x + 1}", "1 2\n", "", None),
    "a command within code": ("for n in range(2):\n    !echo {n}", "0\n1\n", "", None),
    "a command in a function": ("def f(a):\n    !echo {a} $a\nf('x')", "x x\n", "", None),
    "a command of several lines": ("!echo a \\\n  b\n5", "a b\n", "", "5"),
    "a command with quotes": ('!echo "it\'s"', "it's\n", "", None),
    "a command with what is the shell's": (
        "!echo {a,b} ${PWD:0:1} $0 '{print $1}'",
        "a b / /bin/bash {print $1}\n",
        "",
        None,
    ),
    "a command with a dollar": ("x = 1\n!echo '$$x'", "$x\n", "", None),
    "an unfinished string in a command": ("!echo it\\'s (a", None, None, None),
    "a value from a command": ("lines = !printf 'a\\nb'\nlines", "", "", "['a', 'b']"),
    "a value of an expression": ("!!echo a", "", "", "['a']"),
    "an element from a command": ("d = {}\nd['a'] = !echo a\nd", "", "", "{'a': ['a']}"),
    "the status of a command": ("!exit 3\n_exit_code", "", "", "3"),
    "strings beside a command": ("x = '!ls'\n!echo a\nx", "a\n", "", "'!ls'"),
    "a magic beside a string": ("x = '''\n%foo\n'''\n%pwd\nx", "", "", "'\\n%foo\\n'"),
    "an awaited value beside a command": ("import asyncio\n!echo a\nawait asyncio.sleep(0, 5)", "a\n", "", "5"),
    "a folder": ("%cd /usr\n%pwd", "/usr\n", "", "'/usr'"),
    "a folder by a name": ("d = '/usr'\n%cd {d}", "/usr\n", "", None),
    "a variable": ("%env A=5\n%env A", "env: A=5\n", "", "'5'"),
    "a variable after a blank": ("%env A 5\nimport os\nos.environ['A']", "env: A=5\n", "", "'5'"),
    "matplotlib": ("%matplotlib inline\n5", "", "", "5"),
    "names": ("a, b, _c = 1, 2, 3\nimport os\n%who", "a\tb\n", "", None),
    "a script": ("%%bash\nx=5\necho $x {a,b}", "5 a b\n", "", None),
    "a script after blank lines": ("\n\n%%sh\necho a", "a\n", "", None),
    "HTML": ("%%html\n<b>a</b>", "", "", None),
}


@pytest.mark.parametrize("case", MAGICS)
def test_a_magic_does_what_it_says(case: str, python: Driver) -> None:
    code, stdout, stderr, text = MAGICS[case]
    reply = python.run(code)
    if stdout is not None:
        assert (reply.stdout, reply.stderr, reply.error, reply.text) == (stdout, stderr, None, text)


TIMED = {
    "an expression": ("%time 2 + 3", "5"),
    "a statement": ("%time x = 5\nx", "5"),
    "all of the code": ("%%time\nx = 5\nx", "5"),
    "all of the code, which awaits": ("%%time\nimport asyncio\nawait asyncio.sleep(0, 5)", "5"),
}


@pytest.mark.parametrize("case", TIMED)
def test_time_is_taken_of(case: str, python: Driver) -> None:
    code, text = TIMED[case]
    reply = python.run(code)
    assert reply.text == text
    assert reply.stdout.startswith("CPU times: user ")
    assert "\nWall time: " in reply.stdout


@pytest.mark.parametrize("code", ["%timeit -n 2 -r 3 f()", "%%timeit -n2 -r3 x = 1\nf(x)"])
def test_timeit_runs_it_often_enough(code: str, python: Driver) -> None:
    python.run("calls = 0\ndef f(*_):\n    global calls\n    calls += 1")
    assert "per loop (mean ± std. dev. of 3 runs, 2 loops each)" in python.run(code).stdout
    assert python.run("calls").text == "6"


def test_a_file_is_written_and_added_to(python: Driver, tmp_path: Path) -> None:
    outputs = [python.run(f"%%writefile {more}a.txt\nx = {{1}}\n").stdout for more in ("", "", "-a ")]
    assert outputs == ["Writing a.txt\n", "Overwriting a.txt\n", "Appending to a.txt\n"]
    assert (tmp_path / "a.txt").read_text() == "x = {1}\n" * 2


def test_pip_is_that_of_the_interpreter(python: Driver) -> None:
    stdout = python.run("%pip --version").stdout
    version = ".".join(python.ready["version"].split(".")[:2])
    assert f"(python {version})" in stdout


ERRORS = {
    "an unknown magic": ("%foo bar", "UsageError", "%foo is not known; there are %cd, %config, %env, "),
    "an unknown magic of a cell": ("%%foo\nbar", "UsageError", "%%foo is not known; there are %cd, "),
    "a variable that is not there": ("%env NOT_THERE", "UsageError", "there is no environment variable 'NOT_THERE'"),
    "a file without a name": ("%%writefile\na", "UsageError", "%%writefile takes the name of a file"),
    "a script that fails": ("%%bash\nexit 3", "CalledProcessError", "Command "),
    "pip without a sign": (
        "pip install numpy",
        "SyntaxError",
        "invalid syntax (a command of the shell begins with '!'",
    ),
    "no Python below a magic": ("!true\nx = = 1", "SyntaxError", "invalid syntax (<cell 1>, line 2)"),
    "no Python in a timed line": ("%time x = = 1", "SyntaxError", "invalid syntax"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_magic_that_is_wrong_says_so(case: str, python: Driver) -> None:
    code, name, value = ERRORS[case]
    error = python.run(code).error
    assert error
    assert (error["name"], error["value"][: len(value)]) == (name, value)
    assert "__magic__" not in error["traceback"]


def test_pip_without_a_sign_is_told_how_to_write_it(python: Driver) -> None:
    error = python.run("pip install numpy pandas").error
    assert error
    assert "%pip install numpy pandas)" in error["value"]


def test_lines_before_an_unknown_magic_are_run(python: Driver) -> None:
    assert python.run("print('a')\n%foo").stdout == "a\n"


def test_html_is_shown(python: Driver) -> None:
    data = python.run("%%html\n<b>a</b>").of("result")[0]["data"]
    assert data["text/html"] == "<b>a</b>"
