"""`!command`, `%magic` and `%%magic`: lines that are no Python are made into calls, and here is what they call."""

from __future__ import annotations

import builtins
import os
import re
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Attempt = Callable[[str], Any]

LINE = re.compile(r"(?P<indent>\s*)(?:(?P<target>[^=#]*[^=#<>!%\s])\s*=\s*)?(?P<sign>!!?|%)(?P<rest>.*)")
CELL = re.compile(r"\s*%%(?P<name>\w+)[ \t]*(?P<rest>.*)(?:\n(?P<body>(?:.*\n?)*))?")
PIP = re.compile(r"\s*(?:python3? -m )?pip3? (?:install|uninstall|list|show|freeze|download)\b")
BRACES = re.compile(r"(?<![${])\{([^{}\n]+)\}(?!\})|\$([A-Za-z_]\w*)|\$\$")
SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


class UsageError(Exception):
    """What was written after a `%` is not what it takes."""

    __module__ = "builtins"  # so that its name is shown without that of this file


def translate(context: Any, source: str, fault: SyntaxError, attempt: Attempt) -> tuple[Any, SyntaxError | None]:
    """The tree of code that Python has refused, or the fault to be shown for it."""
    builtins.__magic__ = Magics(context)  # pyright: ignore[reportAttributeAccessIssue]
    lines = source.split("\n")
    cell = CELL.fullmatch(source)
    if cell:
        start = source[: cell.start("name")].count("\n")
        if cell["name"] == "time" and not cell["rest"]:
            lines[start] = "__magic__.time_cell()"
            return translate_lines(lines, None, attempt)
        call = "__magic__.cell(%r, %r, %r)" % (cell["name"], cell["rest"], cell["body"] or "")
        return attempt("\n" * start + call), None
    if isinstance(fault, IndentationError) and (fault.msg or "").startswith("unexpected indent"):
        import textwrap

        dedented = textwrap.dedent(source).split("\n")
        if dedented != lines:
            return translate_lines(dedented, None, attempt)
    return translate_lines(lines, fault, attempt)


def translate_lines(lines: list[str], fault: SyntaxError | None, attempt: Attempt) -> tuple[Any, SyntaxError | None]:
    """The line that Python refuses is translated, until it refuses none, or one that is no magic."""
    faults: dict[int, SyntaxError] = {}
    while True:
        if fault is not None:
            number = (fault.lineno or 1) - 1
            if number in faults:
                return None, faults[number]
            if not rewrite(lines, number):
                return None, explain(fault, lines, number)
            faults[number] = fault
        try:
            return attempt("\n".join(lines)), None
        except SyntaxError as error:
            fault = error


def rewrite(lines: list[str], number: int) -> bool:
    match = LINE.fullmatch(lines[number]) if number < len(lines) else None
    if match is None or not match["rest"].strip():
        return False
    rest, end = match["rest"], number
    while rest.endswith("\\") and end + 1 < len(lines):
        end += 1
        rest = rest[:-1] + lines[end]
        lines[end] = ""
    target = match["target"] + " = " if match["target"] else ""
    lines[number] = match["indent"] + target + call_of(match["sign"], rest, bool(target))
    return True


def call_of(sign: str, rest: str, is_assigned: bool) -> str:
    if sign != "%":
        return "__magic__.%s(%r)" % ("lines" if is_assigned or sign == "!!" else "system", rest)
    name, _, rest = rest.strip().partition(" ")
    if name == "time" and rest:
        try:
            compile(rest, "", "eval")
        except SyntaxError:
            return "with __magic__.timed(): " + rest
        return "__magic__.time(lambda: (%s))" % rest
    return "__magic__.line(%r, %r)" % (name, rest.strip())


def explain(fault: SyntaxError, lines: list[str], number: int) -> SyntaxError:
    if number < len(lines) and PIP.match(lines[number]):
        fault.msg += " (a command of the shell begins with '!', and pip also with '%%': %%pip %s)" % (
            lines[number].split("pip", 1)[1].split(" ", 1)[1].strip()
        )
    return fault


class Magics:
    """`__magic__` among the built-in names."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def system(self, command: str) -> None:
        """Runs it; what it prints goes where other output goes."""
        space = caller()
        self.context.streams.flush()
        space["_exit_code"] = subprocess.call(expand(command, space), shell=True, executable=SHELL)

    def lines(self, command: str) -> list[str]:
        """What it prints, line by line."""
        self.context.streams.flush()
        command = expand(command, caller())
        done = subprocess.run(command, shell=True, executable=SHELL, stdout=subprocess.PIPE, check=False)
        return done.stdout.decode("utf-8", "replace").splitlines()

    def line(self, name: str, rest: str) -> Any:
        if name not in LINES:
            raise UsageError("%%%s is not known; there are %s" % (name, known()))
        return LINES[name](self, rest, caller())

    def cell(self, name: str, rest: str, body: str) -> Any:
        if name not in CELLS:
            raise UsageError("%%%%%s is not known; there are %s" % (name, known()))
        return CELLS[name](self, rest, body, caller())

    def time(self, expression: Callable[[], Any]) -> Any:
        with Timed():
            return expression()

    def timed(self) -> Timed:
        return Timed()

    def time_cell(self) -> None:
        self.context.afterwards.append(Timed().report)


class Timed:
    """Prints how long its block took."""

    def __init__(self) -> None:
        self.cpu, self.wall = os.times(), time.perf_counter()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.report()

    def report(self) -> None:
        wall, cpu = time.perf_counter() - self.wall, os.times()
        user, system = cpu.user - self.cpu.user, cpu.system - self.cpu.system
        fields = (readable(user), readable(system), readable(user + system), readable(wall))
        print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % fields)


def caller() -> dict[str, Any]:
    """The names where the magic stands, the nearest last."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return frame.f_globals if frame.f_locals is frame.f_globals else {**frame.f_globals, **frame.f_locals}


def expand(command: str, space: dict[str, Any]) -> str:
    """`{expression}` and `$name` by their values; what is none of the code's names is the shell's affair."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        try:
            return str(evaluate(match[1], space) if match[1] else space[match[2]])
        except Exception:
            return match[0]

    return BRACES.sub(value, command)


def evaluate(expression: str, space: dict[str, Any]) -> Any:
    code = compile(expression.strip(), "<magic>", "eval")
    value = eval(code, dict(space))
    if not code.co_names or isinstance(value, tuple):
        raise ValueError("braces of the shell")
    return value


def readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds * 1e9)


def known() -> str:
    return ", ".join(
        ["%" + name for name in sorted([*LINES, "time"])] + ["%%" + name for name in sorted([*CELLS, "time"])]
    )


def magic_cd(magics: Magics, rest: str, space: dict[str, Any]) -> None:
    folder = expand(rest, space).strip("'\"") or "~"
    os.chdir(os.path.expanduser(folder))
    print(os.getcwd())


def magic_env(magics: Magics, rest: str, space: dict[str, Any]) -> Any:
    name, is_set, value = rest.partition("=") if "=" in rest else rest.partition(" ")
    name = name.strip()
    if is_set:
        os.environ[name] = expand(value.strip(), space)
        print("env: %s=%s" % (name, os.environ[name]))
        return None
    if not name:
        return dict(os.environ)
    if name not in os.environ:
        raise UsageError("there is no environment variable %r" % name)
    return os.environ[name]


def magic_pip(magics: Magics, rest: str, space: dict[str, Any]) -> None:
    import importlib
    import shlex

    magics.context.streams.flush()
    subprocess.call([sys.executable, "-m", "pip", *shlex.split(expand(rest, space))])
    importlib.invalidate_caches()


def magic_pwd(magics: Magics, rest: str, space: dict[str, Any]) -> str:
    return os.getcwd()


def magic_who(magics: Magics, rest: str, space: dict[str, Any]) -> None:
    modules = sys.modules.values()
    names = [name for name, value in space.items() if not name.startswith("_") and value not in modules]
    print("\t".join(sorted(names)) or "there are no names yet")


def magic_timeit(magics: Magics, rest: str, space: dict[str, Any]) -> None:
    options, statement = timeit_options(rest)
    run_timeit(statement, "pass", space, **options)


def magic_nothing(magics: Magics, rest: str, space: dict[str, Any]) -> None:
    """Pictures come back without being asked."""


def timeit_options(rest: str) -> tuple[dict[str, int], str]:
    options: dict[str, int] = {}
    match = re.match(r"-([nr])\s*(\d+)\s+|-[oqpc]\s+", rest + " ")
    while match:
        if match[1]:
            options[{"n": "number", "r": "repeat"}[match[1]]] = int(match[2])
        rest = rest[match.end() :]
        match = re.match(r"-([nr])\s*(\d+)\s+|-[oqpc]\s+", rest + " ")
    return options, rest


def run_timeit(statement: str, setup: str, space: dict[str, Any], number: int = 0, repeat: int = 7) -> None:
    import timeit

    timer = timeit.Timer(statement, setup, globals=space)
    number = number or timer.autorange()[0]
    runs = [seconds / number for seconds in timer.repeat(repeat, number)]
    mean = sum(runs) / len(runs)
    deviation = (sum((run - mean) ** 2 for run in runs) / len(runs)) ** 0.5
    fields = (readable(mean), readable(deviation), repeat, number)
    print("%s ± %s per loop (mean ± std. dev. of %d runs, %d loops each)" % fields)


def cell_shell(magics: Magics, rest: str, body: str, space: dict[str, Any]) -> None:
    magics.context.streams.flush()
    subprocess.run([SHELL, "-c", body], check=True)


def cell_timeit(magics: Magics, rest: str, body: str, space: dict[str, Any]) -> None:
    options, setup = timeit_options(rest)
    run_timeit(body, setup or "pass", space, **options)


def cell_writefile(magics: Magics, rest: str, body: str, space: dict[str, Any]) -> None:
    appends = rest.startswith("-a ")
    path = os.path.expanduser(expand(rest[3:] if appends else rest, space).strip("'\" "))
    if not path:
        raise UsageError("%%writefile takes the name of a file")
    print("%s %s" % ("Appending to" if appends else "Overwriting" if os.path.exists(path) else "Writing", path))
    with open(path, "a" if appends else "w", encoding="utf-8") as file:
        file.write(body)


def cell_html(magics: Magics, rest: str, body: str, space: dict[str, Any]) -> None:
    magics.context.display({"text/html": body, "text/plain": "<HTML>"}, raw=True)


LINES = {
    "cd": magic_cd,
    "config": magic_nothing,
    "env": magic_env,
    "matplotlib": magic_nothing,
    "pip": magic_pip,
    "pwd": magic_pwd,
    "timeit": magic_timeit,
    "who": magic_who,
}

CELLS = {
    "bash": cell_shell,
    "html": cell_html,
    "sh": cell_shell,
    "timeit": cell_timeit,
    "writefile": cell_writefile,
}
