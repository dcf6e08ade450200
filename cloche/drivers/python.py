"""The Python driver: runs one piece of code after another in one namespace, and answers with what came of it.

It is compiled at every start of a context and so imports next to nothing; its other parts are compiled when first
needed. It runs on Python 3.8 and later.
"""

from __future__ import annotations

import _ast
import _thread
import builtins
import os
import sys
from _json import encode_basestring_ascii as quote
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import CodeType, FrameType
    from typing import Any, BinaryIO, NoReturn, TextIO

    Failure = tuple[str, str, str, int]
else:
    import _signal as signal  # the other one takes its time to name the numbers

PARTS = ("core", "errors", "tasks", "magics", "display", "charts")
AWAIT, ONLY_AST, FUTURES, COROUTINE = 0x2000, 0x400, 0x1FE0000, 0x80
TASK_MAKERS = {"create_task", "ensure_future", "get_running_loop"}
LOOP_RUNNERS = {"run", "run_until_complete", "run_forever"}
ALL_SIGNALS = tuple(signal.valid_signals())
SMALL, MANY = 1 << 16, 64 << 20
PLAIN = (int, float, complex, str, bytes, bool, list, tuple, dict, set, frozenset, range)
CONTAINERS: Any = (list, tuple, dict, set)
HOOKED = (
    "matplotlib.pyplot",
    "plotly.basedatatypes",
    "plotly.io",
    "PIL.ImageShow",
    "IPython.core.display_functions",
    "IPython.core.display",
)
"""Modules that show things on a screen or in a kernel, until the display part has told them otherwise."""


class Syntax:
    """What the scanner within the standard library's json asks for; all of json would take half of a start's time."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def main(requests: BinaryIO, parts: list[bytes]) -> NoReturn:
    """Called by the loader, which has read the parts from the stream of requests."""
    space = sys.modules["__main__"].__dict__
    for name in [name for name in space if not name.startswith("__")]:
        del space[name]
    context = Context(requests, parts)
    signal.signal(signal.SIGINT, context.on_interrupt)
    context.replies.send('{"type": "ready", "version": "%s"}\n' % sys.version.split()[0])
    context.serve()


class Replies:
    """The channel to the host; a line is written whole or not at all."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.lock = _thread.allocate_lock()

    def send(self, line: str) -> None:
        data = memoryview(line.encode("ascii"))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            # A handler of the code's own could raise in the middle.
            signal.pthread_sigmask(signal.SIG_BLOCK, ALL_SIGNALS)
            with self.lock:
                while data and self.fd >= 0:
                    data = data[os.write(self.fd, data) :]
        except OSError as error:
            # Without a number it is a handler's, from before the first octet.
            if error.errno:
                os._exit(1)  # nobody is there to be told
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Streams:
    """Standard input, output and error, which are put back after each piece of code."""

    NAMES = ("stdin", "stdout", "stderr")

    def __init__(self, highest: int) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.close(null)
        self.copies = [os.dup2(number, highest - number, False) for number in range(3)]
        self.files = [identify(number) for number in range(3)]
        self.streams: list[TextIO] = [sys.stdin, sys.stdout, sys.stderr]
        standard: Any = (sys.stdout, sys.stderr)
        for stream in standard:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def restore(self) -> None:
        for number, name in enumerate(self.NAMES):
            if identify(number) != self.files[number]:
                os.dup2(self.copies[number], number)
            setattr(sys, name, self.streams[number])
            # Only then, as it may have closed what the one before it was made of.
            if not is_open(self.streams[number]):
                mode = "w" if number else "r"
                self.streams[number] = open(number, mode, 1, "utf-8", "backslashreplace", None, False)
                setattr(sys, name, self.streams[number])

    def flush(self) -> None:
        all_streams: list[Any] = [getattr(sys, "stdout", None), getattr(sys, "stderr", None), *self.streams[1:]]
        for stream in {id(stream): stream for stream in all_streams}.values():
            try:
                stream.flush()
            except Exception:
                continue  # closed, or no stream at all; what was printed went where the code sent it


class Context:
    """One namespace and what belongs to it."""

    def __init__(self, requests: BinaryIO, parts: list[bytes]) -> None:
        highest = requests.fileno()
        self.requests, self.parts = requests, parts
        self.replies = Replies(os.dup2(3, highest - 1, False))
        os.close(3)
        self.streams = Streams(highest - 2)
        self.module, self.space = sys.modules["__main__"], sys.modules["__main__"].__dict__
        self.environ = os.environ
        self.environ.setdefault("MPLBACKEND", "agg")
        builtins.display = self.display  # pyright: ignore[reportAttributeAccessIssue]
        self.builtins = dict(vars(builtins))
        self.loaded: dict[str, dict[str, Any]] = {}
        self.sources: dict[str, Any] = {}
        self.hooks: dict[str, Any] = dict.fromkeys(HOOKED, self.prepare)
        self.hooks["linecache"] = self.share_sources
        self.id = self.count = self.sent = self.futures = 0
        self.last: Any = None
        self.tasks: Any = None
        self.afterwards: list[Any] = []
        self.shown: list[Any] = []
        self.text_of, self.folder = text_of, ""
        self.accepts_interrupt = self.is_interrupted = self.is_forked = False
        self.is_begun, self.is_blocked, self.faults = False, False, 0
        self.mask: set[Any] = set()
        self.failure: Failure | None = None
        self.fault: BaseException | None = None
        self.before: dict[str, str | None] = {}
        for name in self.hooks.keys() & sys.modules.keys():
            self.hooks[name](sys.modules[name])
        sys.meta_path.insert(0, self)  # pyright: ignore[reportArgumentType]
        self.finders = list(sys.meta_path)
        os.register_at_fork(after_in_child=self.forget_host)

    def serve(self, levels: int = 4) -> NoReturn:
        """For ever. What a handler of the code's own raises in the next to last level is caught in the one before."""
        while True:
            try:
                if levels:
                    self.serve(levels - 1)
                self.step()
            except BaseException as error:
                self.fault = error

    def step(self) -> None:
        """What was begun is answered, whatever has torn it away; else the next request is begun."""
        self.block()
        if self.fault and (self.is_alone() or self.faults > 1000):
            os._exit(1)
        if self.is_begun:
            self.faults += 1
            self.answer()
            return
        if self.fault:
            self.complain(self.fault)
            self.fault = None
        # Handlers that code has left may run here, and raise, and no octet is lost by it.
        self.unblock()
        self.requests.peek(1)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
        self.block()
        request = self.read()
        self.begin(request)
        self.attempt(request)

    def is_alone(self) -> bool:
        """Whether code has closed a channel."""
        return None in (identify(self.requests.fileno()), identify(self.replies.fd))

    def read(self) -> dict[str, Any]:
        line = self.requests.readline()
        if not line:
            self.leave()
        try:
            return make_scanner(Syntax)(line.decode("utf-8"), 0)[0]  # pyright: ignore[reportArgumentType]
        except (ValueError, StopIteration) as error:
            self.complain(error)
            os._exit(1)  # who speaks another language gets no answer that he understands

    def begin(self, request: dict[str, Any]) -> None:
        self.id, self.sent, self.count = request["id"], 0, self.count + 1
        self.failure, self.before = None, {}
        self.is_begun, self.is_interrupted = True, False
        self.replies.send('{"type": "begun", "id": %d, "count": %d}\n' % (self.id, self.count))

    def attempt(self, request: dict[str, Any]) -> None:
        """Only here the signals come that the code has left open."""
        try:
            self.enter(request)
            self.accepts_interrupt = True
            self.unblock()
            if self.is_interrupted:
                raise KeyboardInterrupt
            try:
                self.execute(request["code"])
            finally:
                self.conclude()
        except BaseException as error:
            self.failure = self.describe(error)

    def answer(self) -> None:
        self.accepts_interrupt = False
        if self.fault and not self.failure:
            name = type(self.fault).__name__
            self.failure = (name, "", name + "\n", 1)
        if self.is_forked:
            self.end_child(self.failure)
        self.restore()
        if self.failure:
            fields = (self.id, quote(self.failure[0]), quote(self.failure[1]), quote(self.failure[2]))
            self.failure = None
            self.send('{"type": "error", "id": %d, "name": %s, "value": %s, "traceback": %s}\n' % fields)
        self.fault, self.faults, self.is_begun = None, 0, False
        self.send('{"type": "done", "id": %d}\n' % self.id)

    def enter(self, request: dict[str, Any]) -> None:
        wanted: dict[str, str] = request.get("env") or {}
        for name, value in wanted.items():
            self.before[name] = self.environ.get(name)
            self.environ[name] = value
        if request.get("cwd"):
            os.chdir(request["cwd"])

    def execute(self, source: str) -> None:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        name = "<cell %d>" % self.count
        self.sources[name] = (len(source), None, [line + "\n" for line in source.split("\n")], name)
        codes = self.compile(source, name)
        value = None
        if any(code.co_flags & COROUTINE or makes_tasks(code) for code in codes):
            self.tasks = self.tasks or self.part("tasks")["Tasks"]()
            value = self.tasks.run(codes, self.space)
        else:
            for code in codes:
                value = eval(code, self.space)
        if value is not None and not self.is_forked:
            self.remember(value)
            if type(value) in PLAIN:
                self.send_result({"text/plain": text_of(value)}, main=True)
            else:
                self.send_result(self.part("display")["bundle"](self, value), main=True)

    def compile(self, source: str, name: str) -> list[CodeType]:
        """One code object for the statements, and one for the last of them where that is a value to be shown."""
        tree = self.parse(source, name)
        last = tree.body[-1] if tree.body else None
        codes: list[CodeType] = []
        if isinstance(last, _ast.Expr) and not is_silent(source, last):
            tree.body.pop()
        if tree.body:
            codes.append(compile(tree, name, "exec", AWAIT | self.futures, True))
            self.futures |= codes[0].co_flags & FUTURES
        if isinstance(last, _ast.Expr) and last not in tree.body:
            codes.append(compile(_ast.Expression(last.value), name, "eval", AWAIT | self.futures, True))
        return codes

    def parse(self, source: str, name: str) -> _ast.Module:
        def attempt(text: str) -> Any:
            return compile(text, name, "exec", ONLY_AST | AWAIT | self.futures, True)

        try:
            return attempt(source)
        except SyntaxError as error:
            fault = error
        # Only what is no Python can be a magic: in a string or an expression the same signs stay what they are.
        tree, fault = self.part("magics")["translate"](self, source, fault, attempt)
        if fault:
            raise fault
        return tree

    def remember(self, value: Any) -> None:
        """As `_`, unless code uses that name for something else."""
        space = self.space
        if space.get("_") is self.last:
            space["___"], space["__"], space["_"] = space.get("__"), space.get("_"), value
            self.last = value
        space["_%d" % self.count] = value

    def conclude(self) -> None:
        """What code has left to be done, while it can still be interrupted."""
        while self.afterwards:
            self.afterwards.pop()()
        if "matplotlib.pyplot" in sys.modules and not self.is_forked:
            self.part("display")["show_figures"](self)
        self.streams.flush()

    def display(self, *values: Any, **options: Any) -> Any:
        """Shows values at once, in each form that they have."""
        return self.part("display")["display"](self, *values, **options)

    def send_result(self, bundle: dict[str, Any], *, main: bool) -> None:
        text = bundle.get("text/plain")
        if len(bundle) == 1 and isinstance(text, str) and len(text) < SMALL and self.sent < MANY:
            data, cut = '"text/plain": ' + quote(text), ""
        else:
            data, cut = self.part("display")["encode"](self, bundle)
        self.sent += len(data)
        more = ', "cut": {%s}' % cut if cut else ""
        fields = (self.id, "true" if main else "false", data, more)
        # A thread may show things when nobody listens.
        if self.accepts_interrupt:
            self.send('{"type": "result", "id": %d, "main": %s, "data": {%s}%s}\n' % fields)

    def send(self, line: str) -> None:
        self.streams.flush()
        self.replies.send(line)

    def describe(self, error: BaseException) -> Failure:
        self.restore_builtins()
        return self.part("errors")["describe"](error)

    def complain(self, error: BaseException) -> None:
        """Of what was raised outside of any execution."""
        try:
            sys.stderr.write(self.describe(error)[2])
        except Exception:
            return

    def restore(self) -> None:
        """What the next piece of code and this driver rely on."""
        self.restore_builtins()
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))
        sys.meta_path[:0] = [finder for finder in self.finders if finder not in sys.meta_path]
        sys.modules["__main__"] = self.module
        self.space.setdefault("__name__", "__main__")
        self.space["__builtins__"] = builtins
        # Each piece of code is warned of its own; lines of different ones have the same numbers.
        self.space.pop("__warningregistry__", None)
        self.streams.restore()
        for name, value in self.before.items():
            if value is None:
                self.environ.pop(name, None)
            else:
                self.environ[name] = value
        signal.signal(signal.SIGINT, self.on_interrupt)

    def restore_builtins(self) -> None:
        there = builtins.__dict__
        for name in self.builtins.keys() - there.keys():
            there[name] = self.builtins[name]

    def on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self.accepts_interrupt or frame is None or frame.f_code in DRIVER:
            self.is_interrupted = True
        elif not (self.tasks and self.tasks.take_interrupt(frame)):
            raise KeyboardInterrupt

    def block(self) -> None:
        """All signals; which ones code had blocked itself is remembered."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        if not self.is_blocked:
            self.mask = before
        self.is_blocked = True
        signal.pthread_sigmask(signal.SIG_BLOCK, ALL_SIGNALS)

    def unblock(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask - {signal.SIGINT})
        self.is_blocked = False

    def forget_host(self) -> None:
        """In a forked child, which is to answer nobody."""
        self.is_forked, self.tasks = True, None
        for fd in (self.requests.fileno(), self.replies.fd, *self.streams.copies):
            try:
                os.close(fd)
            except OSError:
                continue  # code has closed it before
        self.replies.fd = -1

    def end_child(self, failure: Failure | None) -> NoReturn:
        """As a program would end, but without leaving by ways that are the parent's."""
        if failure and failure[0] != "SystemExit":
            os.write(2, failure[2].encode("utf-8", "backslashreplace"))
        self.streams.flush()
        os._exit(failure[3] & 255 if failure else 0)

    def leave(self) -> NoReturn:
        import atexit

        self.unblock()
        try:
            atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        finally:
            self.streams.flush()
            os._exit(0)

    def part(self, name: str) -> dict[str, Any]:
        """The names of another part, compiled when first asked for."""
        if name not in self.loaded:
            space = {"__name__": "cloche_" + name, "__builtins__": __builtins__}
            exec(compile(self.parts[PARTS.index(name)], "<cloche python_%s>" % name, "exec"), space)
            self.loaded[name] = space
        return self.loaded[name]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """As one of the finders of modules: has some of them changed as soon as they are there."""
        hook = self.hooks.get(name)
        if hook is None:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec: Any = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                hook(module)

            spec.loader.exec_module = exec_module
        return spec

    def prepare(self, module: Any) -> None:
        self.part("display")["prepare"](self, module)

    def share_sources(self, linecache: Any) -> None:
        self.sources.update(linecache.cache)
        linecache.cache = self.sources


DRIVER = {method.__code__ for method in (Context.serve, Context.step, Context.block, Context.begin, Context.answer)}
"""Where an interrupt has nothing to end, or nothing any more."""


def identify(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError as error:
        if error.errno:
            return None
        raise  # not the system's: a handler's
    return status.st_dev, status.st_ino


def is_open(stream: TextIO) -> bool:
    try:
        return not stream.closed
    except ValueError:
        return False  # its buffer was taken from it


def is_silent(source: str, last: _ast.Expr) -> bool:
    """Whether a semicolon follows it."""
    line = source.split("\n")[(last.end_lineno or 1) - 1]
    return ";" in line and line.encode()[last.end_col_offset or 0 :].lstrip(b") \t").startswith(b";")


def makes_tasks(code: CodeType) -> bool:
    """Whether it needs a loop that runs already, though it awaits nothing itself."""
    names = set(code.co_names)
    return bool(names & TASK_MAKERS) and not names & LOOP_RUNNERS


def text_of(value: Any) -> str:
    """Its repr; a long one of a container is broken into lines."""
    try:
        text = repr(value)
        if 80 < len(text) < SMALL and isinstance(value, CONTAINERS):
            import pprint

            return pprint.pformat(value, width=80, compact=True, sort_dicts=False)
        return text
    except Exception as error:
        return "<%s whose repr raised %s>" % (type(value).__name__, type(error).__name__)
