"""Code in a Python context, in each interpreter of this machine: what it gives, and what it cannot break."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests import pythons

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.driver import Driver, Reply

VALUES = {
    "a number": ("1 + 1", "2"),
    "a string": ("'it''s'", "'its'"),
    "what follows statements": ("x = 20\nx += 1\nx * 2", "42"),
    "what follows on the same line": ("x = 20; x", "20"),
    "none": ("None", None),
    "a statement": ("x = 1", None),
    "nothing": ("", None),
    "a comment": ("# nothing", None),
    "what a semicolon silences": ("1;", None),
    "what a semicolon silences before a comment": ("'ä';  # quiet", None),
    "a semicolon in a string": ("'a;'", "'a;'"),
    "a semicolon in a comment": ("1  # a; b", "1"),
    "lines of Windows": ("x = 1\r\nx + 1\r\n", "2"),
    "an indented piece of a text": ("    x = 3\n    x", "3"),
    "a short list": ("[1, 2]", "[1, 2]"),
    "a wide dict": ("{'a' * 50: 1, 'b' * 50: 2}", f"{{{'a' * 50!r}: 1,\n {'b' * 50!r}: 2}}"),
    "an awaited value": ("import asyncio\nawait asyncio.sleep(0, 5)", "5"),
    "the name of the module": ("__name__", "'__main__'"),
    "the module itself": ("import __main__\nanswer = 42\n__main__.answer", "42"),
    "a pickled instance of its class": (
        "import pickle\nclass A:\n    x = 1\npickle.loads(pickle.dumps(A())).x",
        "1",
    ),
    "hints of a class": (
        "import typing\nclass A: ...\nclass B:\n    a: 'A'\ntyping.get_type_hints(B)['a'] is A",
        "True",
    ),
    "a data class": ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nP(1)", "P(x=1)"),
    "the source of a function": (
        "def f():\n    return 1  # why\nimport inspect\ninspect.getsource(f)",
        repr("def f():\n    return 1  # why\n"),
    ),
    "standard input": ("import sys\nsys.stdin.read()", "''"),
    "the first free descriptor": ("import os\nos.open('.', os.O_RDONLY)", "3"),
    "what a child inherits": (
        "import subprocess\nsubprocess.call('readlink /proc/self/fd/* | grep -c pipe', shell=True, close_fds=False);",
        None,
    ),
    "the backend of matplotlib": ("import os\nos.environ['MPLBACKEND']", "'agg'"),
    "names that the loader left": ("[name for name in globals() if name[0] != '_']", "[]"),
    "a raising repr": ("class A:\n    def __repr__(self): 1 / 0\nA()", "<A whose repr raised ZeroDivisionError>"),
    "a number too long for text": ("[10 ** 5000]", ...),
    "work of other processes": (
        (
            "import multiprocessing\n"
            "with multiprocessing.get_context('spawn').Pool(1) as pool: value = pool.apply(abs, (-3,))\nvalue"
        ),
        "3",
    ),
    "work of forked processes": (
        (
            "import multiprocessing\ndef double(x): return 2 * x\n"
            "with multiprocessing.get_context('fork').Pool(1) as pool: value = pool.map(double, [1, 2])\nvalue"
        ),
        "[2, 4]",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_the_last_expression_is_the_result(case: str, python: Driver) -> None:
    code, text = VALUES[case]
    reply = python.run(code)
    assert not reply.error
    assert text is ... or reply.text == text


def test_a_start_says_which_version_it_is_and_an_execution_which_one(python: Driver) -> None:
    begun = [python.run("1").of("begun")[0] for _ in range(2)]
    assert [(message["id"], message["count"]) for message in begun] == [(1, 1), (2, 2)]
    assert python.ready["version"].startswith("3.")


def test_a_start_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    with pythons.start(sys.executable, tmp_path, "-I", "-S") as driver:
        text = driver.run("import sys\nsorted({'asyncio', 'enum', 'json', 're', 'traceback'} & set(sys.modules))").text
    assert text == "[]"


def test_the_end_of_the_requests_ends_it_after_what_was_to_be_done_at_the_exit(python: Driver) -> None:
    python.run("import atexit\natexit.register(print, 'bye')")
    python.end_requests()
    assert python.collect("never").stdout == "bye\n"
    assert exit_status(python) == 0


def test_requests_that_are_sent_at_once_are_answered_one_after_the_other(python: Driver) -> None:
    python.request(b'{"id": 1, "code": "x = 1"}\n{"id": 2, "code": "x + 1"}\n')
    assert python.run("x").of("done")


def test_what_is_no_request_ends_it(python: Driver) -> None:
    reply = python.request(b"garbage\n", until="never")
    assert [message["type"] for message in reply.messages] == ["ready"]
    assert exit_status(python) == 1


def test_earlier_values_have_names(python: Driver) -> None:
    python.run("1")
    python.run("2")
    assert python.run("(_, __, _1, _2)").text == "(2, 1, 1, 2)"


def test_the_name_of_the_last_value_may_be_used_for_something_else(python: Driver) -> None:
    python.run("_ = 'mine'")
    python.run("2")
    assert python.run("_").text == "'mine'"


def test_future_statements_hold_for_later_code(python: Driver) -> None:
    python.run("from __future__ import annotations")
    assert python.run("def f(a: missing): ...\nf.__annotations__").text == "{'a': 'missing'}"


def test_the_driver_has_no_future_statements_for_the_code(python: Driver) -> None:
    assert python.run("def f(a: int): ...\nf.__annotations__").text == "{'a': <class 'int'>}"


def test_values_of_the_environment_are_there_for_one_execution(python: Driver) -> None:
    python.run("import os\nos.environ['KEPT'] = 'before'")
    code = "was = os.environ['KEPT'], os.environ['NEW']\ndel os.environ['KEPT']\nos.environ['NEW'] = 'other'\nwas"
    assert python.run(code, env={"KEPT": "now", "NEW": "now"}).text == "('now', 'now')"
    assert python.run("os.environ.get('KEPT'), os.environ.get('NEW')").text == "('before', None)"


def test_values_of_the_environment_go_after_an_error(python: Driver) -> None:
    python.run("1 / 0", env={"NEW": "now"})
    assert python.run("import os\n'NEW' in os.environ").text == "False"


def test_a_value_that_the_environment_cannot_hold_is_an_error(python: Driver) -> None:
    error = python.run("1", env={"NEW": "a\0b"}).error
    assert error
    assert error["name"] == "ValueError"


def test_a_working_directory_stays(python: Driver, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    python.run("1", cwd=str(tmp_path / "below"))
    assert python.run("import os\nos.getcwd()").text == repr(str(tmp_path / "below"))


def test_a_working_directory_that_is_not_there_is_an_error(python: Driver) -> None:
    error = python.run("print('never')", cwd="/no/such").error
    assert error
    assert error["name"] == "FileNotFoundError"


def test_modules_beside_the_code_can_be_imported(python: Driver, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("answer = 42")
    assert python.run("import beside\nbeside.answer").text == "42"


OUTPUTS = {
    "text": ("print('a')\nprint('b')", "a\nb\n", ""),
    "text without a newline": ("print('a', end='')", "a", ""),
    "all languages": ("print('äπ😀')", "äπ😀\n", ""),
    "half of a pair": ("print('\\ud800')", "\\ud800\n", ""),
    "errors": ("import sys\nprint('a', file=sys.stderr)", "", "a\n"),
    "octets": ("import sys\nsys.stdout.buffer.write(b'a\\xff');", "a�", ""),
    "octets on the descriptor": ("import os\nos.write(1, b'a');", "a", ""),
    "processes in between": ("print('a', flush=True)\nimport os\nos.system('echo b')\nprint('c')", "a\nb\nc\n", ""),
    "a warning": (
        "import warnings\nfor _ in range(3):\n    warnings.warn('careful')",
        "",
        "<cell 1>:3: UserWarning: careful\n  warnings.warn('careful')\n",
    ),
    "a log": ("import logging\nlogging.warning('careful')", "", "WARNING:root:careful\n"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_what_is_printed_comes_before_the_end(case: str, python: Driver) -> None:
    code, stdout, stderr = OUTPUTS[case]
    reply = python.run(code)
    assert (reply.stdout, reply.stderr) == (stdout, stderr)


def test_the_same_warning_of_different_code_is_shown_again(python: Driver) -> None:
    code = "import warnings\nwarnings.warn('careful')"
    assert [python.run(code).stderr.count("careful'") for _ in range(2)] == [1, 1]


def test_what_is_printed_comes_while_the_code_runs(python: Driver, tmp_path: Path) -> None:
    code = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.001)"
    run_until_output(python, code)
    (tmp_path / "go").touch()
    assert python.collect("done").of("done")


def test_a_great_deal_of_output_comes_whole(python: Driver) -> None:
    assert len(python.run("print('x' * 10_000_000)").stdout) == 10_000_001


BREAKAGE = {
    "standard output is nothing": "import sys\nsys.stdout = None",
    "standard output is no stream": "import sys\nsys.stdout = 5",
    "standard output is gone": "import sys\ndel sys.stdout, sys.stderr",
    "standard output is a stream that raises": "import sys\nclass A:\n    def flush(self): 1 / 0\nsys.stdout = A()",
    "standard output is wrapped": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
    "standard output has lost its buffer": "import sys\nsys.stdout.detach();",
    "standard streams are closed": "import sys\nsys.stdout.close()\nsys.stderr.close()\nsys.stdin.close()",
    "descriptors are closed": "import os\nfor n in range(3): os.close(n)",
    "descriptors are others": "import os\nn = os.open('/dev/null', os.O_RDWR)\nos.dup2(n, 1)\nos.dup2(n, 2)",
    "the usual descriptors are closed": "import os\nos.closerange(3, 256)",
    "built-in names are gone": "import builtins\ndel builtins.print, builtins.len, builtins.isinstance, builtins.display",
    "built-in names have other values": "import builtins\nbuiltins.len = builtins.repr = builtins.str = None",
    "all built-in names are gone": "del __builtins__",
    "all names are gone": "globals().clear()",
    "the module is another": "import sys\nsys.modules['__main__'] = 5",
    "the module is gone": "import sys\ndel sys.modules['__main__']",
    "all names of a module are imported": "from os import *",
    "finders are gone": "import sys\ndel sys.meta_path[:]",
    "recursion goes nowhere": "import sys\nsys.setrecursionlimit(60)",
    "recursion goes far": "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return n and f(n - 1)\nf(3000)",
    "recursion has no end": "def f(): return f()\nf()",
    "recursion of two has no end": "def f(): return g()\ndef g(): return f()\nf()",
    "the locale is another": "import locale\nlocale.setlocale(locale.LC_ALL, 'C')",
    "nothing is collected": "import gc\ngc.disable()",
    "faults are handled": "import faulthandler\nfaulthandler.enable()",
    "it exits": "exit()",
    "it quits": "quit()",
    "it exits by the system": "import sys\nsys.exit('no')",
    "it asks": "input()",
    "it stops for a debugger": "breakpoint()",
    "an interrupt is ignored": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
    "an interrupt is what it is elsewhere": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)",
    "an interrupt is blocked": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals());",
    "a thread goes on": "import threading, time\nthreading.Thread(target=lambda: [time.sleep(0.001) for _ in range(100)]).start()",
    "its loop is closed": "import asyncio\nloop = asyncio.get_running_loop()\nloop.call_soon(loop.stop)\nawait asyncio.sleep(0)",
    "a file without an end is its folder": "import os, tempfile\nf = tempfile.mkdtemp()\nos.chdir(f)\nos.rmdir(f)",
    "it is no text": "'\ud800'",
    "it has an octet that is nothing": "'\0'",
    "it nests without end": "(" * 1000,
}


@pytest.mark.parametrize("case", BREAKAGE)
def test_the_next_code_runs_whatever_the_last_has_done(case: str, python: Driver) -> None:
    python.run("x = 41")
    python.run(BREAKAGE[case])
    if case in ("all names are gone", "built-in names have other values"):
        return
    reply = python.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\ndisplay(len([1]))\nx + 1")
    assert (reply.text, reply.stdout, reply.error) == ("42", "out\n", None)
    assert reply.stderr.endswith("err\n")
    assert [message["data"]["text/plain"] for message in reply.of("result")] == ["1", "42"]


ENDS = {
    "it ends its process": ("import os\nos._exit(7)", 7),
    "it closes the channel": ("import os\nos.closerange(3, 4096)", 1),
}


@pytest.mark.parametrize("case", ENDS)
def test_an_end_of_the_process_is_an_end(case: str, python: Driver) -> None:
    code, status = ENDS[case]
    assert not python.run(code, until="never").of("done")
    assert exit_status(python) == status


FORKS = {
    "returns": ("", 0, ""),
    "shows something": ("display(1)", 0, ""),
    "exits": ("raise SystemExit(3)", 3, ""),
    "raises": ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
    "has a value": ("print('child')", 0, ""),
}


@pytest.mark.parametrize("case", FORKS)
def test_a_forked_child_answers_nobody(case: str, python: Driver) -> None:
    code, status, stderr = FORKS[case]
    child = f"import os\nif os.fork() == 0:\n    {code or 'pass'}\nelse:\n    status = os.wait()[1] >> 8\n"
    reply = python.run(f"{child}globals().get('status')")
    assert reply.text == str(status)
    assert reply.stderr.endswith(stderr)
    assert [message["type"] for message in reply.messages][-3:] == ["begun", "result", "done"]


INTERRUPTIBLE = {
    "sleeps": "import time\nprint('now')\ntime.sleep(60)",
    "counts": "print('now')\nwhile True: pass",
    "shows": "print('now')\nwhile True: display(1)",
    "waits for a process": "print('now')\n!sleep 60",
    "waits for a process that ignores it": "print('now')\n!trap '' INT; sleep 60; true",
    "awaits": "import asyncio\nprint('now')\nawait asyncio.sleep(60)",
    "counts in a task": "import asyncio\nawait asyncio.sleep(0)\nprint('now')\nwhile True: pass",
    "runs a loop of its own": "import asyncio\nprint('now')\nasyncio.run(asyncio.sleep(60))",
    "has a value that is long in coming": "class A:\n    def __repr__(self):\n        print('now')\n        while True: pass\nA()",
    "raises an error that is long in coming": (
        "class A(Exception):\n    def __str__(self):\n        print('now')\n        while True: pass\nraise A"
    ),
    "has a handler of its own": "import signal\nprint('now')\ntry:\n    while True: pass\nfinally: signal.signal(2, print)",
}


@pytest.mark.parametrize("case", INTERRUPTIBLE)
def test_an_interrupt_ends_code_that(case: str, python: Driver) -> None:
    python.run("x = 41")
    reply = interrupted(python, INTERRUPTIBLE[case])
    assert reply.error
    assert reply.error["name"] == "KeyboardInterrupt"
    assert "on_interrupt" not in reply.error["traceback"]
    assert python.run("x + 1").text == "42"


def test_an_interrupt_right_after_the_beginning_ends_the_code(python: Driver) -> None:
    for _ in range(50):
        python.run("while True: pass", until="begun")
        python.interrupt()
        error = python.collect("done").error
        assert error
        assert error["name"] == "KeyboardInterrupt"


def test_between_executions_an_interrupt_does_nothing(python: Driver) -> None:
    python.run("x = 41")
    for _ in range(100):
        python.interrupt()
        reply = python.run("x + 1")
        assert reply.of("done")
    # One may come just as the next code begins; what was sent before is over by this one.
    assert python.run("x + 1").text == "42"


def test_an_interrupt_is_ours_again_in_the_next_execution(python: Driver) -> None:
    python.run(BREAKAGE["an interrupt is ignored"])
    python.run(BREAKAGE["an interrupt is blocked"])
    assert interrupted(python, INTERRUPTIBLE["counts"]).error


def test_an_interrupt_can_be_caught_and_a_second_one_too(python: Driver) -> None:
    code = "for _ in range(2):\n    try:\n        print('now')\n        while True: pass\n    except KeyboardInterrupt: pass\n'on'"
    run_until_output(python, code)
    python.interrupt()
    wait_for_output(python)
    python.interrupt()
    assert python.collect("done").text == "'on'"


def test_no_reply_is_torn_by_interrupts_or_by_alarms_that_raise(python: Driver) -> None:
    code = (
        "import signal, threading\n"
        "def ring(*_): raise TimeoutError\n"
        "signal.signal(signal.SIGALRM, ring);\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005);\n"
    )
    python.run(code)
    with interrupts(python):
        for _ in range(60):
            # Every line is JSON, and every execution is answered to its end.
            python.run("for _ in range(20): display('x' * 100_000)\n'y' * 300_000")
    # Also where nothing runs they do no harm, however many they are.
    seen = 0
    while seen < 1200:
        seen += python.collect_output().count("TimeoutError\n")
    # An alarm may come before it is turned off.
    while python.run("signal.setitimer(signal.ITIMER_REAL, 0);").error:
        pass
    assert python.run("40 + 2").text == "42"


def test_no_reply_is_torn_by_interrupts_that_another_thread_takes(python: Driver) -> None:
    python.run("import threading\nend = threading.Event()\nthreading.Thread(target=end.wait).start()")
    with interrupts(python):
        for _ in range(60):
            python.run("while True: display('x' * 300_000)")
    python.run("end.set()")
    assert python.run("40 + 2").text == "42"


def test_a_handler_that_raises_between_executions_loses_no_request(python: Driver) -> None:
    python.run("import signal\ndef ring(*_): raise OSError('ring')\nsignal.signal(signal.SIGALRM, ring);")
    os.kill(python.pid, signal.SIGALRM)
    wait_for_output(python)
    assert python.run("40 + 2").text == "42"


def test_threads_print_after_the_end_and_show_nothing(python: Driver) -> None:
    code = (
        "import threading, os\nready = threading.Event()\n"
        "def work():\n    ready.wait()\n    display('never')\n    os.write(1, b'later')\nthreading.Thread(target=work).start()"
    )
    python.run(code)
    python.run("threading.Timer(0.02, ready.set).start()")
    wait_for_output(python)
    assert [message["type"] for message in python.run("1").messages] == ["begun", "result", "done"]


@contextmanager
def interrupts(python: Driver) -> Generator[None]:
    """Thousands a second."""
    code = f"import os, time\nwhile os.killpg({python.pid}, 2) is None: time.sleep(0.0003)"
    noise = subprocess.Popen([sys.executable, "-S", "-c", code])
    try:
        yield
    finally:
        noise.kill()
        noise.wait()


def wait_for_output(python: Driver) -> None:
    deadline = time.monotonic() + 20
    while not python.collect_output():
        assert time.monotonic() < deadline


def run_until_output(python: Driver, code: str) -> None:
    if not python.run(code, until="begun").stdout:
        wait_for_output(python)


def interrupted(python: Driver, code: str) -> Reply:
    """What comes of code that is interrupted when it has printed something."""
    run_until_output(python, code)
    if "sleep(60)" in code or "sleep 60" in code:
        pythons.wait_until_asleep(python)
    python.interrupt()
    return python.collect("done")


def exit_status(python: Driver) -> int:
    """Its process stays there to be waited for at the end."""
    done = os.waitid(os.P_PID, python.pid, os.WEXITED | os.WNOWAIT)
    assert done
    return done.si_status
