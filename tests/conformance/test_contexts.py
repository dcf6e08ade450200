"""Contexts: interpreters that stay (product line 6)."""

from __future__ import annotations

import resource
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox, settings
from cloche.client._sync import turns
from cloche.errors import ContextNotFound, InvalidRequest, RuntimeNotFound, SandboxError, SandboxNotFound
from cloche.images.host import find_host_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloche import CodeResult, Display

    from .conftest import Make

LANGUAGES = ("python", "javascript", "bash")
SET = {"python": "a = 20", "javascript": "const a = 20", "bash": "a=20"}
USE = {"python": "print(a * 2)\na + 1", "javascript": "console.log(a * 2)\na + 1", "bash": "echo $((a * 2))"}
SLEEP = {
    "python": "import time\nprint('begun', flush=True)\ntime.sleep(60)",
    "javascript": "console.log('begun')\nawait new Promise(done => setTimeout(done, 60000))",
    "bash": "echo begun; sleep 60",
}
LOOP = {"python": "while True: pass", "javascript": "while (true) {}", "bash": "while :; do :; done"}
DIE = {"python": "import os\nos._exit(3)", "javascript": "process.exit(3)", "bash": "kill -9 $$"}
FAIL = {"python": "1 / 0", "javascript": "nowhere.at", "bash": "exit 3"}
PRINT = {
    "python": "import sys\nprint('out')\nprint('err', file=sys.stderr)",
    "javascript": "console.log('out'); console.error('err')",
    "bash": "echo out; echo err >&2",
}


@pytest.fixture(autouse=True)
def _no_context(sandbox: Sandbox) -> None:
    """Each test finds none."""
    for context in sandbox.contexts.list():
        sandbox.contexts.remove(context)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_defined_is_there_for_the_next_piece(sandbox: Sandbox, language: str) -> None:
    first = sandbox.run_code(SET[language], language=language).check()
    second = sandbox.run_code(USE[language], language=language).check()
    assert (first.execution_count, second.execution_count, second.stdout) == (1, 2, "40\n")
    assert second.text == (None if language == "bash" else "21")
    assert (second.context, second.language, second.note, second.state_lost) == (language, language, None, False)


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_outputs_are_apart_and_streamed(sandbox: Sandbox, language: str) -> None:
    seen: list[tuple[str, str]] = []
    result = sandbox.run_code(
        PRINT[language],
        language=language,
        on_stdout=lambda text: seen.append(("out", text)),
        on_stderr=lambda text: seen.append(("err", text)),
    )
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert sorted(seen) == [("err", "err\n"), ("out", "out\n")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_is_told_and_the_context_lives(sandbox: Sandbox, language: str) -> None:
    sandbox.run_code(SET[language], language=language)
    result = sandbox.run_code(FAIL[language], language=language)
    assert not result.ok
    if language == "bash":
        assert result.exit_code == 3
    else:
        assert result.error
        assert result.error.name == {"python": "ZeroDivisionError", "javascript": "ReferenceError"}[language]
        assert "cloche" not in result.error.traceback.lower()
    assert sandbox.run_code(USE[language], language=language).stdout == "40\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_interrupt_ends_the_code_and_keeps_the_variables(sandbox: Sandbox, language: str) -> None:
    sandbox.run_code(SET[language], language=language)
    found: list[CodeResult] = []
    begun = threading.Event()

    def run() -> None:
        found.append(sandbox.run_code(SLEEP[language], language=language, on_stdout=lambda _: begun.set()))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(20)
    assert sandbox.contexts.interrupt(language)
    thread.join(20)
    assert not found[0].ok
    assert (found[0].limit_hit, found[0].state_lost) == (None, False)
    assert sandbox.run_code(USE[language], language=language).stdout == "40\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_when_the_time_is_up_the_variables_stay(sandbox: Sandbox, language: str) -> None:
    sandbox.run_code(SET[language], language=language)
    result = sandbox.run_code(LOOP[language], language=language, timeout=0.3)
    assert (result.limit_hit, result.state_lost, result.ok) == ("timeout", False, False)
    assert result.message == "out of time: the limit is 0.3 s; raise timeout"
    assert sandbox.run_code(USE[language], language=language).stdout == "40\n"


def test_an_interpreter_that_does_not_obey_is_ended_and_that_is_said(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "OBEY_SECONDS", (0.1, 0.1))
    code = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\nwhile True: pass"
    result = sandbox.run_code(code, timeout=0.3)
    assert (result.limit_hit, result.state_lost) == ("timeout", True)
    assert result.message
    assert "variables are lost" in result.message
    assert "this is a new interpreter" in (sandbox.run_code("1").note or "")
    assert sandbox.run_code("1").note is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_dead_interpreter_is_told_and_the_next_piece_gets_a_new_one(sandbox: Sandbox, language: str) -> None:
    sandbox.run_code(SET[language], language=language)
    result = sandbox.run_code(DIE[language], language=language)
    assert result.error
    how = "was killed by signal 9" if language == "bash" else "ended with exit code 3"
    assert (result.error.name, result.error.value, result.state_lost) == ("ContextDied", f"the interpreter {how}", True)
    again = Sandbox.connect(sandbox.id).run_code(PRINT[language], language=language)
    assert (again.stdout, again.execution_count) == ("out\n", 1)
    assert again.note == f"this is a new interpreter: the one before {how}, and what it knew is lost"


def test_out_of_memory_is_told_by_name(make_or_refuse: Callable[..., Sandbox | None]) -> None:
    box = make_or_refuse("memory_mb", memory_mb=96)
    if box is None:
        return
    result = box.run_code("x = bytearray(300_000_000)")
    assert (result.limit_hit, result.state_lost) == ("memory_mb", True)
    assert result.message
    assert result.message.startswith("out of memory: the limit is 96 MB; raise memory_mb. The context's variables")
    assert box.run_code("1 + 1").text == "2"


def test_several_contexts_know_nothing_of_each_other_and_run_at_once(sandbox: Sandbox) -> None:
    one, two = sandbox.contexts.create(), sandbox.contexts.create("python", env={"WHICH": "two"})
    path = f"meeting-{one.id}"
    waiting = f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.01)\na = 1"
    found: list[CodeResult] = []
    thread = threading.Thread(target=lambda: found.append(sandbox.run_code(waiting, context=one)))
    thread.start()
    result = sandbox.run_code(f"import os\nopen({path!r}, 'w').close()\nos.environ['WHICH']", context=two)
    thread.join(20)
    assert (result.text, found[0].ok) == ("'two'", True)
    error = sandbox.run_code("a", context=two.id).error
    assert error
    assert error.name == "NameError"
    assert [context.id for context in sandbox.contexts.list()] == [one.id, two.id]


def test_in_one_context_others_wait(sandbox: Sandbox) -> None:
    sandbox.run_code("total = 0")
    code = "import time\nseen = total\ntime.sleep(0.01)\ntotal = seen + 1"
    threads = [threading.Thread(target=Sandbox.connect(sandbox.id).run_code, args=(code,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sandbox.run_code("total").text == "8"


def test_two_that_begin_at_once_get_one_context(sandbox: Sandbox) -> None:
    together = threading.Barrier(6)

    def run() -> None:
        other = Sandbox.connect(sandbox.id)
        together.wait()
        other.run_code("try: n += 1\nexcept NameError: n = 1")

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sandbox.run_code("n").text == "6"
    assert [context.id for context in sandbox.contexts.list()] == ["python"]


def test_restart_forgets_and_remove_ends(sandbox: Sandbox) -> None:
    sandbox.run_code("a = 1")
    sandbox.contexts.restart("python")
    result = sandbox.run_code("'a' in globals()")
    assert (result.text, result.execution_count, result.note) == ("False", 1, None)
    sandbox.contexts.remove("python")
    assert sandbox.contexts.list() == []
    with pytest.raises(ContextNotFound, match="there is no context 'python'; there is none"):
        sandbox.contexts.restart("python")


def test_a_variable_of_one_piece_is_gone_with_it_and_a_folder_stays(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("below")
    for language, code in {
        "python": "import os\nprint(os.environ.get('ONCE'), os.path.basename(os.getcwd()))",
        "javascript": "console.log(process.env.ONCE ?? 'None', process.cwd().split('/').pop())",
        "bash": "echo ${ONCE-None} ${PWD##*/}",
    }.items():
        assert sandbox.run_code(code, language=language, env={"ONCE": "x"}, cwd="below").stdout == "x below\n"
        assert sandbox.run_code(code, language=language).stdout == "None below\n"


def test_results_come_in_order_and_as_they_are_shown(sandbox: Sandbox) -> None:
    seen: list[Display] = []
    code = "display({'text/html': '<b>1</b>'}, raw=True)\nprint('between')\ndisplay(2)\n3"
    result = sandbox.run_code(code, on_result=seen.append).check()
    assert result.results == tuple(seen)
    assert [shown.html or shown.text for shown in seen] == ["<b>1</b>", "2", "3"]
    assert [shown.main for shown in seen] == [False, False, True]


def test_what_is_too_large_is_cut_and_whole_in_the_box(sandbox: Sandbox) -> None:
    result = sandbox.run_code("display({'text/html': 'x' * 20_000_000}, raw=True)").check()
    cut = result.results[0].cut["text/html"]
    assert cut.size == 20_000_000
    assert cut.path
    assert sandbox.files.stat(cut.path).size == 20_000_000
    assert set(result.results[0].html or "") == {"x"}


def test_output_beyond_the_limit_is_cut_in_the_middle_and_told(sandbox: Sandbox) -> None:
    result = sandbox.run_code("for n in range(200_000): print(n)", output_bytes=10_000)
    assert result.stdout.startswith("0\n1\n2\n")
    assert result.stdout.endswith("199999\n")
    assert len(result.stdout) < 400_000
    assert result.limit_hit == "output_bytes"
    assert result.output_dropped > 500_000


@pytest.mark.parametrize("said", ["nonsense\\n", '{"type": "done"}\\n', "x" * 100 + "\\n"])
def test_nonsense_in_its_name_ends_the_context_and_not_the_box(sandbox: Sandbox, said: str) -> None:
    # What the code does in its own process can't be kept from it: here it writes wherever a pipe is.
    code = f"""
import os
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        if "pipe" in os.readlink(f"/proc/self/fd/{{fd}}"): os.write(fd, b'{said}')
    except OSError: pass
"""
    result = sandbox.run_code(code)
    assert result.error
    assert (result.error.name, result.state_lost) == ("ContextBroken", True)
    assert sandbox.run_code("1 + 1").text == "2"


def test_a_client_that_goes_away_interrupts(sandbox: Sandbox) -> None:
    sandbox.run_code("a = 1")

    class Gone(Exception):
        pass

    def leave(_: str) -> None:
        raise Gone

    with pytest.raises(Gone):
        sandbox.run_code(SLEEP["python"], on_stdout=leave)
    assert sandbox.run_code("a", timeout=20).text == "1"


def test_a_box_that_ends_in_the_middle_is_told(make: Make) -> None:
    box = make()
    killer = Sandbox.connect(box.id)
    result = None
    with suppress(SandboxError, SandboxNotFound):
        result = box.run_code(SLEEP["python"], on_stdout=lambda _: killer.kill())
    # The keeper may have found the time to tell.
    assert result is None or result.state_lost
    with pytest.raises(SandboxNotFound):
        box.run_code("1")


def test_what_is_unknown_is_told(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidRequest, match="language is 'cobol'"):
        sandbox.run_code("", language="cobol")
    with pytest.raises(RuntimeNotFound, match=r"there is no python 3\.99"):
        sandbox.run_code("", language="python3.99")
    with pytest.raises(ContextNotFound, match="there is no context 'nowhere'"):
        sandbox.run_code("", context="nowhere")
    with pytest.raises(InvalidRequest, match="both given"):
        sandbox.run_code("", context="python", language="python")
    with pytest.raises(InvalidRequest, match="cwd is '/nowhere'"):
        sandbox.contexts.create(cwd="/nowhere")


def others_of(sandbox: Sandbox) -> list[str]:
    """One other version of Python that this machine has, if any, which is new enough."""
    found = [name for name in find_host_image(settings.home()).interpreters if name.startswith("python3.")]
    return [name for name in found if name != sandbox.runtime.name and int(name.split(".")[1]) >= 8][:1]


def test_another_version_is_another_context(sandbox: Sandbox) -> None:
    own = sandbox.run_code("import sys\n'%d.%d' % sys.version_info[:2]", language=sandbox.runtime.name)
    assert (own.context, own.text) == ("python", repr(sandbox.runtime.name.removeprefix("python")))
    for name in others_of(sandbox):
        result = sandbox.run_code("import sys\n'%d.%d' % sys.version_info[:2]", language=name)
        assert (result.context, result.text) == (name, repr(name.removeprefix("python")))


def test_code_that_is_large_goes_in_whole(sandbox: Sandbox) -> None:
    assert sandbox.run_code(f"x = {'a' * 3_000_000!r}\nlen(x)").text == "3000000"
    assert sandbox.run_code(f"x={'a' * 300_000}; echo ${{#x}}", language="bash").stdout == "300000\n"


def test_contexts_end_with_the_box(make: Make) -> None:
    box = make()
    box.run_code("1")
    box.kill()
    with pytest.raises(SandboxNotFound):
        box.run_code("1")


def test_who_waits_for_a_turn_keeps_nobody_from_another_context(sandbox: Sandbox) -> None:
    begun, go = threading.Event(), "go-on"
    waiting = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({go!r}): time.sleep(0.01)"

    def note(_: str) -> None:
        begun.set()

    first = threading.Thread(target=sandbox.run_code, args=(waiting,), kwargs={"on_stdout": note})
    first.start()
    assert begun.wait(20)
    found: list[CodeResult] = []
    second = threading.Thread(target=lambda: found.append(Sandbox.connect(sandbox.id).run_code("'B'")))
    second.start()
    assert Sandbox.connect(sandbox.id).run_code("echo hi", language="bash").stdout == "hi\n"
    assert Sandbox.connect(sandbox.id).contexts.create("bash").language == "bash"
    assert not found
    sandbox.files.write(go, "")
    for thread in (first, second):
        thread.join(20)
    assert found[0].text == "'B'"
    sandbox.files.remove(go)


@pytest.mark.parametrize("end", ["import os\nos._exit(0)", "import os\nos.kill(os.getpid(), 9)"])
def test_whoever_comes_next_is_told_what_became_of_the_last_one(sandbox: Sandbox, end: str) -> None:
    assert sandbox.run_code(end).state_lost
    assert "the one before" in (Sandbox.connect(sandbox.id).run_code("1").note or "")


def test_another_program_is_told_of_one_that_did_not_obey(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "OBEY_SECONDS", (0.1, 0.1))
    code = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\nwhile True: pass"
    assert sandbox.run_code(code, timeout=0.2).state_lost
    assert "was killed by signal 9" in (Sandbox.connect(sandbox.id).run_code("1").note or "")


def test_a_time_limit_that_the_code_swallows_is_no_success(sandbox: Sandbox) -> None:
    code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass"
    result = sandbox.run_code(code, timeout=0.3)
    assert (result.ok, result.limit_hit, result.error) == (False, "timeout", None)


def test_restarts_at_any_moment_leave_one_interpreter(sandbox: Sandbox) -> None:
    sandbox.run_code("1")
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            sandbox.run_code("1")

    thread = threading.Thread(target=run)
    thread.start()
    other = Sandbox.connect(sandbox.id)
    for _ in range(10):
        other.contexts.restart("python")
    over.set()
    thread.join(60)
    alive = [it for it in sandbox.commands.list() if it.tag.startswith("context ") and it.exit_code is None]
    assert len(alive) == 1


def test_removal_waits_for_no_reader(sandbox: Sandbox) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def read_slowly(_: str) -> None:
        begun.set()
        go_on.wait(60)

    code = "for i in range(100000): print('x' * 1000)"
    thread = threading.Thread(target=sandbox.run_code, args=(code,), kwargs={"on_stdout": read_slowly, "timeout": 0})
    thread.start()
    assert begun.wait(20)
    Sandbox.connect(sandbox.id).contexts.remove("python")
    assert not go_on.is_set()
    go_on.set()
    thread.join(20)


def test_one_that_cannot_start_is_told_with_the_reason(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"could not be started: .*exit code 126"):
        sandbox.contexts.create(env={"A": "x" * 200_000})


def test_too_few_processes_are_told_by_name(
    make_or_refuse: Callable[..., Sandbox | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = make_or_refuse("pids", pids=4)
    if box is None:
        return
    monkeypatch.setattr(turns, "BEGIN_SECONDS", 2.0)
    result = box.run_code("1", language="javascript")
    assert (result.ok, result.limit_hit) == (False, "pids")


def test_a_full_disk_costs_what_is_cut_and_nothing_else(make_or_refuse: Callable[..., Sandbox | None]) -> None:
    box = make_or_refuse("disk_mb", disk_mb=8)
    if box is None:
        return
    for language, code in {
        "python": "display({'text/html': 'x' * (9 << 20)}, raw=True)\n5",
        "javascript": "display.html('x'.repeat(9 << 20)); 5",
    }.items():
        result = box.run_code(code, language=language).check()
        assert result.text == "5"
        assert result.results[0].cut["text/html"].path is None


BEGIN_AGAIN = """
import gc, os, time
found = [it for it in gc.get_objects() if type(it).__name__ == "Context" and hasattr(it, "replies")][0]
while True:
    os.write(found.replies.fd, b'{"type":"begun","id":%d,"count":%d}\\n' % (found.id, COUNT))
    time.sleep(0.05)
"""


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_code_gives_itself_more_time(sandbox: Sandbox, count: int) -> None:
    result = sandbox.run_code(BEGIN_AGAIN.replace("COUNT", str(count)), timeout=0.5)
    assert result.error
    assert (result.error.name, result.state_lost) == ("ContextBroken", True)


def test_a_flood_gives_no_more_time_either(sandbox: Sandbox) -> None:
    began = time.monotonic()
    result = sandbox.run_code("import os\nwhile True: os.write(1, b'x' * 65536)", timeout=1)
    assert result.limit_hit == "timeout"
    assert time.monotonic() - began < 10


FORGE = """
import gc, os
said = b'{"type":"result","id":%d,"main":false,"data":{"application/json":[' + b"{}," * 9000000 + b'{}]}}\\n'
found = [it for it in gc.get_objects() if type(it).__name__ == "Context" and hasattr(it, "replies")][0]
rest = said.replace(b"%d", b"%d" % found.id, 1)
while rest: rest = rest[os.write(found.replies.fd, rest):]
"""


def test_values_that_would_fill_the_hosts_memory_end_the_context(sandbox: Sandbox) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = sandbox.run_code(FORGE)
    assert result.error
    assert result.error.name == "ContextBroken"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
