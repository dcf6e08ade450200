"""The driver of bash contexts."""

from __future__ import annotations

import base64
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.drivers import start_driver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.driver import Reply
    from tests.drivers import Started

BASH = "/usr/bin/bash"


@dataclass
class Shell:
    """A driver, and requests of the form that it takes."""

    driver: Started
    folder: Path
    count: int = 0

    def run(self, code: str, *, cwd: str = "", env: Mapping[str, str] | None = None, until: str = "done") -> Reply:
        self.count += 1
        fields = [code, cwd, *(f"{name}={value}" for name, value in (env or {}).items())]
        body = b"".join(b"%d\n%s\n" % (len(field.encode()), field.encode()) for field in fields)
        return self.driver.request(b"%d %d\n%s" % (self.count, len(fields), body), until=until)

    def interrupt(self, code: str) -> Reply:
        """Interrupts code that makes the file `on` when it is where it is to be interrupted."""
        sign, deadline = self.folder / "on", time.monotonic() + 20
        sign.unlink(missing_ok=True)
        self.run(code, until="begun")
        while not sign.exists():
            assert time.monotonic() < deadline
            time.sleep(0.002)
        self.driver.interrupt()
        return self.driver.collect("done")


def exit_code(reply: Reply) -> int:
    (done,) = reply.of("done")
    return done["exit_code"]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with start_driver("bash", BASH, tmp_path) as driver:
        yield Shell(driver, tmp_path)


def test_a_shell_says_its_version_and_counts_what_it_runs(shell: Shell) -> None:
    first, second = shell.run("echo one"), shell.run("echo two >&2")
    assert shell.driver.ready["version"].startswith("5.")
    assert (first.stdout, second.stderr) == ("one\n", "two\n")
    assert first.messages[1:] == [{"type": "begun", "id": 1, "count": 1}, {"type": "done", "id": 1, "exit_code": 0}]
    assert second.messages[0]["count"] == 2


STATES = {
    "variables": (
        "x='a b'; declare -A m=([k]=v); declare -i n=4; export E=e",
        "n+=1; echo $x ${m[k]} $n; env | grep ^E=",
    ),
    "functions": ("f() { local y=$1; echo f $y $FUNCNAME; }", "f 1"),
    "aliases": ("shopt -s expand_aliases; alias hi='echo hi'", "hi"),
    "options": (
        "set -f -o pipefail; shopt -s nullglob; umask 027",
        "echo * $-; shopt nullglob; set -o | grep pipefail; umask",
    ),
    "traps": ("trap 'echo got' USR1; trap '' HUP", "kill -USR1 $$; kill -HUP $$; trap -p HUP"),
    "the folder and its stack": ("cd /usr; pushd /etc >/dev/null", "pwd; dirs; popd >/dev/null; pwd"),
    "arguments": ("set -- p 'q r'", 'echo $# "$2"'),
    "a last exit code": ("false", "echo $?"),
    "readonly variables": ("readonly IFS=, r=1 line=1 status=2", "v=a,b; echo $v; (r=2) 2>/dev/null; echo $r"),
    "open files": ("exec 5>kept; exec {lock}>lock", "echo in >&5; cat kept; echo $((lock < 20))"),
    "functions that are called as builtins": (
        "exec() { :; }; read() { :; }; printf() { :; }; local() { :; }; eval() { builtin eval 'echo mine'; }; set() { :; }",
        "type -t exec read",
    ),
}
EXITS = {
    "": "nothing",
    "; (exit 3)": "an exit code",
    "; exit 3": "an exit",
    "; e() { local x=inner m=inner; exit 3; }; e": "an exit of a function",
    "; eval 'exit 3'": "an exit of an eval",
    "; while :; do while :; do break 9; done; done": "a break of more loops than there are",
}


@pytest.mark.parametrize("ending", EXITS, ids=EXITS.get)
@pytest.mark.parametrize("state", STATES)
def test_what_code_changes_stays(state: str, ending: str, shell: Shell) -> None:
    code, question = STATES[state]
    if ending and state in ("a last exit code", "arguments"):
        code = f"{code}; {'exit 1' if 'exit' in state else ':'}"
    elif not (ending.startswith("; eval") and state.startswith("functions that")):
        code += ending
    shell.run(code)
    lines = {
        "variables": "a b v 5\nE=e\n",
        "functions": "f 1 f\n",
        "aliases": "hi\n",
        "options": "* fhBc\nnullglob       \ton\npipefail       \ton\n0027\n",
        "traps": "got\ntrap -- '' SIGHUP\n",
        "the folder and its stack": "/etc\n/etc /usr\n/usr\n",
        "arguments": "2 q r\n",
        "a last exit code": "1\n",
        "readonly variables": "a b\n1\n",
        "open files": "in\n1\n",
        "functions that are called as builtins": "function\nfunction\n",
    }
    assert shell.run(question).stdout == lines[state]


ENDS = {
    "exit 3; echo no": (3, "", ""),
    "exit": (0, "", ""),
    "set -e; false; echo no": (1, "", ""),
    "set -u; echo $nope; echo no": (127, "", "bash: line 1: nope: unbound variable\n"),
    "echo ${x:?is missing}; echo no": (127, "", "bash: line 1: x: is missing\n"),
    "if": (2, "", "bash: eval: line 2: syntax error: unexpected end of file\n"),
    "echo a\nnosuch": (127, "a\n", "bash: line 2: nosuch: command not found\n"),
    "echo $((1/0)); echo no": (1, "", 'bash: line 1: 1/0: division by 0 (error token is "0")\n'),
    "return 3": (2, "", "bash: line 1: return: can only `return' from a function or sourced script\n"),
    "break; echo on": (0, "", ""),
    "continue; echo on": (0, "", ""),
    "set -o posix; . ./nosuch; echo no": (1, "", "bash: line 1: ./nosuch: No such file or directory\n"),
    "(exit 7)": (7, "", ""),
    "true | false": (1, "", ""),
    "cat": (0, "", ""),
    "trap 'echo bye' EXIT; exit 4": (4, "bye\n", ""),
    "trap 'echo bye; exit 9' EXIT; exit 4": (9, "bye\n", ""),
    "trap 'echo $?' EXIT; set -e; (exit 6)": (6, "6\n", ""),
    "trap 'echo err' ERR; false; true": (0, "err\n", ""),
    "(trap 'echo sub' EXIT; exit 2)": (2, "sub\n", ""),
    "trap 'echo a' EXIT; trap 'echo b' INT; trap - EXIT; exit 5": (5, "", ""),
    "trap 'echo \"> $BASH_COMMAND\"' DEBUG; true": (0, "> true\n", ""),
    "set -x; true": (0, "", "+++ true\n"),
    "exec >hidden 2>&1; echo in a file; nosuch": (127, "", ""),
    "exec 0<&- 1>&- 2>&-": (0, "", ""),
    "echo 'é' | wc -c; echo ${#IFS}": (0, "3\n3\n", ""),
}


@pytest.mark.parametrize("code", ENDS)
def test_code_ends_as_in_a_script_and_the_shell_goes_on(code: str, shell: Shell) -> None:
    shell.run("x=kept")
    reply = shell.run(code.replace("{x:?", "{y:?"))
    assert (exit_code(reply), reply.stdout, reply.stderr.replace(": y:", ": x:")) == ENDS[code]
    assert reply.error is None
    after = shell.run("set +x; trap - DEBUG ERR; echo $x")
    assert after.stdout.splitlines()[-1] == "kept"


DISTURBANCES = (
    "IFS=x",
    "LC_ALL=POSIX",
    "LC_ALL=C.UTF-8",
    "set -a",
    "set -k",
    "set -o posix",
    "set -eu",
    "set -efu -o pipefail; shopt -s nullglob failglob nocasematch lastpipe extdebug inherit_errexit",
    "trap '' PIPE INT EXIT",
    "unset -f trap; trap 'exit 3' EXIT INT ERR",
    "trap() { :; }",
    "unset IFS PATH HOME PWD",
    "exec 1>&- 2>&-",
    "OPTIND=7; REPLY=1; getopts a v -a",
    "enable -n echo; test() { return 1; }; [() { return 1; }",
    "BASH_XTRACEFD=1; set -x",
    "declare -n ref=x",
    "ulimit -n 64",
)


@pytest.mark.parametrize("code", DISTURBANCES)
def test_a_shell_goes_on_after(code: str, shell: Shell) -> None:
    shell.run(code)
    assert shell.run("v='é à'; printf '%s\\n' \"$v\"").stdout.endswith("é à\n")
    shell.run("exit 3")
    reply = shell.run('printf "%s\\n" "$v"', env={"A": "é"})
    assert (exit_code(reply), reply.stdout.splitlines()[-1]) == (0, "é à")


def test_a_shell_keeps_its_process_after_an_exit(shell: Shell) -> None:
    before = shell.run("echo $$; sleep 20 & echo $!").stdout.split()
    shell.run("exit 3")
    assert shell.run(f"echo $$; kill {before[1]} && echo killed").stdout == f"{before[0]}\nkilled\n"


def test_background_jobs_survive_what_does_not_end_the_shell(shell: Shell) -> None:
    shell.run("sleep 20 &")
    assert shell.run("jobs -r; kill %1; wait; echo $?").stdout == "[1]+  Running                 sleep 20 &\n0\n"


def test_what_code_reads_is_empty_and_what_it_redirects_is_its_own(shell: Shell) -> None:
    shell.run("exec >away; exec <away; echo hidden")
    assert shell.run("cat; cat away; echo back").stdout == "hidden\nback\n"


def test_variables_of_a_request_are_for_its_code_only(shell: Shell) -> None:
    shell.run("A=old; declare -a B=(1 2); export C=c")
    question = 'echo "$A|${B[*]}|${C-unset}|${D-unset}"; env | grep -c "^[ABCD]="'
    reply = shell.run(f"{question}; unset C D; A=changed", env={"A": "new\nline", "B": "b", "C": "", "D": "d"})
    assert reply.stdout == "new\nline|b||d\n4\n"
    assert shell.run(question).stdout == "old|1 2|c|unset\n1\n"


def test_variables_of_a_request_are_undone_after_an_exit(shell: Shell) -> None:
    shell.run("A=old")
    shell.run("exit 3", env={"A": "new", "LC_ALL": "C", "IFS": ":"})
    assert shell.run('echo "$A ${#IFS} $LC_ALL"').stdout == "old 3 C.UTF-8\n"


def test_a_folder_of_a_request_is_for_good_and_one_that_is_not_there_is_told(shell: Shell) -> None:
    assert shell.run("pwd", cwd="/usr").stdout == "/usr\n"
    reply = shell.run("echo no", cwd="/no where")
    assert (exit_code(reply), reply.stdout) == (1, "")
    assert "/no where: No such file or directory" in reply.stderr
    assert shell.run("pwd").stdout == "/usr\n"


@pytest.mark.parametrize("code", ["ls -l /proc/self/fd", "exit 3", "f() { exit 3; }; f"])
def test_a_child_has_three_descriptors_and_no_channel(code: str, shell: Shell) -> None:
    shell.run(code)
    children = shell.run("ls -l /proc/self/fd; readlink /proc/self/fd/0")
    assert shell.driver.pipes_in(children.stdout) == {1, 2}
    assert children.stdout.endswith("/dev/null\n")


LOOPS = {
    "a program": ": >on; sleep 60",
    "a loop": ": >on; while :; do :; done",
    "functions": "g() { while true; do sleep 60; done; }; f() { while :; do : >on; g; done; }; f",
    "a substitution": ": >on; y=$(sleep 60)",
    "a pipeline": ": >on; sleep 60 | cat",
    "a read": ": >on; read y < <(sleep 60)",
    "a wait": ": >on; sleep 60 & wait",
    "a subshell": "(: >on; while :; do :; done)",
    "a handler of the code": "trap 'echo mine' INT; : >on; while :; do :; done",
    "an ignored signal": "trap '' INT; : >on; while :; do :; done",
    "errexit": "set -e; : >on; sleep 60; echo no",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends(loop: str, shell: Shell) -> None:
    for turn in range(2):
        shell.run(f"x={turn}")
        reply = shell.interrupt(LOOPS[loop])
        assert reply.error is not None
        assert (reply.error["name"], exit_code(reply)) == ("Interrupted", 130)
        assert shell.run("echo $x").stdout == f"{turn}\n"


def test_an_interrupt_may_come_at_any_time(shell: Shell) -> None:
    shell.run("x=1")
    for _ in range(30):
        shell.driver.interrupt()
        reply = shell.run("x=1; :", until="begun")
        shell.driver.interrupt()
        if not reply.of("done"):
            shell.driver.collect("done")
    assert shell.run("echo $x").stdout == "1\n"


def test_the_end_of_the_requests_ends_the_shell_after_its_exit_trap(shell: Shell) -> None:
    shell.run("trap 'echo bye' EXIT")
    code, reply = shell.driver.end()
    assert (code, reply.stdout) == (0, "bye\n")


@pytest.mark.parametrize("code", ["kill $$", "set -n", "exec true", "f() { f; }; f"])
def test_where_the_process_ends_nothing_is_said(code: str, shell: Shell) -> None:
    reply = shell.run(code)
    assert [message["type"] for message in reply.messages if message["type"] != "ready"] == ["begun"]


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300


def test_display_sends_a_picture(shell: Shell) -> None:
    (shell.folder / "a b.png").write_bytes(PICTURE)
    reply = shell.run("display 'a b.png'; (display 'a b.png'); echo $?")
    assert [base64.b64decode(one["data"]["image/png"]) for one in reply.of("result")] == [PICTURE, PICTURE]
    assert [one["main"] for one in reply.of("result")] == [False, False]
    assert reply.stdout == "0\n"


@pytest.mark.parametrize("name", ["none.png", "large.png", "text.txt"])
def test_display_says_what_it_cannot_send(name: str, shell: Shell) -> None:
    (shell.folder / "large.png").write_bytes(b"\0" * (7 << 20))
    reply = shell.run(f"display {name}")
    assert exit_code(reply) != 0
    assert name in reply.stderr
    assert not reply.of("result")


def test_code_may_be_large_and_of_any_octets(shell: Shell) -> None:
    text = "é\t\\\"'$`" * 20_000
    quoted = text.replace("'", "'\\''")
    assert shell.run(f"printf %s '{quoted}' | md5sum").stdout == shell.run("md5sum <x", cwd=_write(shell, text)).stdout


def _write(shell: Shell, text: str) -> str:
    (shell.folder / "x").write_text(text)
    return str(shell.folder)


def test_a_signal_to_the_shell_is_the_codes_own(shell: Shell) -> None:
    shell.run("trap 'echo got' TERM")
    os.kill(shell.driver.pid, signal.SIGTERM)
    assert "ok\n" in shell.run("echo ok").stdout
