"""`cloche run`, with real boxes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

CLOCHE = [sys.executable, "-m", "cloche"]


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> Path:
    return home


def call(*words: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*CLOCHE, *words], input=input, capture_output=True, timeout=60)


def test_code_runs_and_its_exit_status_is_ours_and_nothing_is_left(home: Path) -> None:
    done = call("run", "-c", "import sys; print(6 * 7); print('oh', file=sys.stderr); sys.exit(3)")
    assert (done.stdout, done.stderr, done.returncode) == (b"42\n", b"oh\n", 3)
    assert Sandbox.list() == []
    assert list((home / "boxes").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["-c", "import sys; print(sys.argv[1:])", "a", "-b"], b"['a', '-b']\n"),
        (["-c", "import sys; print(sys.argv[1:])", "--", "--foo", "--", "b"], b"['--foo', '--', 'b']\n"),
        (["--runtime", "node", "-c", "console.log(process.argv.slice(1))", "a", "-b"], b"[ 'a', '-b' ]\n"),
        (["--runtime", "bash", "-c", 'echo "$@"', "a", "-b"], b"a -b\n"),
    ],
)
def test_the_code_gets_its_own_arguments(words: list[str], output: bytes) -> None:
    assert call("run", *words).stdout == output


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a.py", "import sys; print(sys.argv[1], input())"),
        ("a.mjs", "import fs from 'fs'; console.log(process.argv[2], fs.readFileSync(0, 'utf8'))"),
        ("a b.sh", 'echo "$1" "$(cat)"'),
    ],
)
def test_a_file_runs_by_its_suffix_with_arguments_and_our_input(tmp_path: Path, name: str, code: str) -> None:
    file = tmp_path / name
    file.write_text(code)
    assert call("run", str(file), "one", input=b"two").stdout.split() == [b"one", b"two"]


def test_two_dashes_may_stand_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import sys; print(sys.argv[1:])")
    assert call("run", "--", f"{tmp_path}/a.py", "--json", "--", "x").stdout == b"['--json', '--', 'x']\n"


def test_code_comes_from_standard_input() -> None:
    assert call("run", "-", "x", input=b"import sys; print(sys.argv[1])").stdout == b"x\n"


def test_code_comes_from_a_pipe_as_from_a_file(tmp_path: Path) -> None:
    line = f"{' '.join(CLOCHE)} run <(echo 'print(input())')"
    done = subprocess.run(["bash", "-c", line], input=b"in\n", capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"in\n", b"")
    for name in ("/dev/stdin", "/proc/self/fd/0"):
        assert call("run", name, "x", input=b"import sys; print(sys.argv[1])").stdout == b"x\n"
    (tmp_path / "a").write_text("import sys; print(sys.stdin.read())")
    with (tmp_path / "a").open() as file:
        done = subprocess.run([*CLOCHE, "run", "/dev/stdin"], stdin=file, capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"\n", b"")


@pytest.mark.parametrize("name", ["/nowhere/x.py", "/tmp", "", "/proc/self/mem/x"])
def test_a_wrong_file_is_noticed_before_there_is_a_box(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Sandbox, "create", None)
    assert main(["run", name]) == 125
    assert f"{name!r} " in capfd.readouterr().err


def test_octets_pass_as_they_are() -> None:
    done = call("run", "-c", r"import os; os.write(1, bytes(range(256))); os.write(2, b'\x1b[2J')")
    assert (done.stdout, done.stderr) == (bytes(range(256)), b"\x1b[2J")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--timeout", "0.3"], "while True: pass", "out of time: the limit is 0.3 s; raise --timeout"),
        (["--memory", "64"], "bytearray(1 << 30)", "out of memory: the limit is 64 MB; raise --memory"),
        (["--output", "2048"], "print('x' * 5000)", "raise --output"),
        (["--disk", "16"], "open('a', 'wb').write(bytes(1 << 25))", "out of disk: the limit is 16 MB; raise --disk"),
        (["--pids", "8"], "import os\nwhile True: os.fork() or __import__('time').sleep(9)", "raise --pids"),
    ],
)
def test_a_limit_is_explained_in_one_line(options: list[str], code: str, message: str) -> None:
    lines = call("run", *options, "-c", code).stderr.decode().splitlines()
    assert [line for line in lines if line.startswith("cloche: ")] == [line for line in lines if message in line]
    assert any(message in line for line in lines)


def test_a_program_gets_the_result_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--json", "--runtime", "bash", "-c", "echo out; exit 4"]) == 4
    answer = json.loads(capfd.readouterr().out)
    assert (answer["stdout"], answer["exit_code"], answer["limit_hit"]) == ("out\n", 4, None)


def test_a_workspace_is_seen_from_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seen").write_text("")
    monkeypatch.chdir(tmp_path)
    assert call("run", "--workspace", ".", "--runtime", "bash", "-c", "ls /workspace").stdout == b"seen\n"
    assert call("run", "--workspace", ".:rw", "--runtime", "bash", "-c", "touch made").returncode == 0
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ended_from_outside_it_leaves_nothing(home: Path, number: signal.Signals) -> None:
    command = [*CLOCHE, "run", "-c", "print('begun', flush=True); import time; time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert list((home / "boxes").iterdir()) == []


def test_a_reader_that_goes_away_is_no_error(home: Path) -> None:
    command = [*CLOCHE, "run", "--output", "0", "-c", "while True: print('y' * 1000)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        assert process.wait(20) == 141
        assert process.stderr.read() == b""
    assert list((home / "boxes").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/nowhere/x.py"], "No such file"),
        (["/tmp"], "is a folder"),
        (["--engine", "moon", "-c", "1"], "expected one of: embedded"),
        (["--memory", "0", "-c", "1"], "at least 16 MB"),
        (["--runtime", "python9", "-c", "1"], "there is no python 9"),
        (["--user", "me", "-c", "1"], "'user' or 'root' was expected"),
    ],
)
def test_what_makes_no_sense_is_told_and_leaves_nothing(
    home: Path, capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["run", *words]) == 125
    assert message in capfd.readouterr().err
    assert not list(home.glob("boxes/*"))


@pytest.mark.parametrize("words", [[], ["--"], ["--json"], ["--memory", "64"]])
def test_without_code_the_words_make_no_sense(capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["run", *words]) == 2
    assert "there is no code; expected a file, - for standard input, or -c CODE" in capfd.readouterr().err
