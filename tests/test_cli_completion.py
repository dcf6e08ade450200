from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cloche import Sandbox
from cloche.cli.completion import SCRIPTS, candidates
from cloche.cli.main import COMMANDS, main


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([""], sorted(COMMANDS)),
        (["cr"], ["create"]),
        (["nonsense", ""], []),
        (["run", "--eng"], ["--engine"]),
        (["run", "--engine", "emb"], ["embedded", "embedded:crun", "embedded:runc"]),
        (["run", "--memory", ""], []),
        (["run", ""], []),
        (["exec", "bo"], ["box"]),
        (["exec", "-i", "bo"], ["box"]),
        (["exec", "--user", "r"], ["root"]),
        (["exec", "box", "--us"], ["--user"]),
        (["exec", "box", "--", "--us"], []),
        (["rm", "box", "bo"], ["box"]),
        (["logs", "box", "--fo"], ["--follow"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
    ],
)
def test_what_may_come_next(box: Sandbox, words: list[str], found: list[str]) -> None:
    del box
    assert candidates(words) == found


def test_runtimes_and_images_are_those_that_are_there(box: Sandbox) -> None:
    assert box.runtime.name in candidates(["run", "--runtime", "py"])
    assert candidates(["run", "--image", ""]) == ["host"]


ASK = {
    "bash": "source ./script; COMP_WORDS=(cloche exec bo) COMP_CWORD=2; _cloche; echo ${COMPREPLY[@]}",
    "zsh": "compdef() { :; }; source ./script; compadd() { print -- $found }; words=(cloche exec bo) CURRENT=3; _cloche",
    "fish": "source ./script; complete -C 'cloche exec bo'",
}


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_the_shell_itself_completes(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    del box
    assert main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    done = subprocess.run([shell, "-c", ASK[shell]], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["box"], "")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("my", "my\\ box"), ("'my\\ b'", "my\\ box"), ('"\'my b"', "my box"), ("'\"my b'", "my box"), ("none", "")],
)
def test_bash_quotes_a_name_with_spaces(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str
) -> None:
    del home
    (tmp_path / "script").write_text(SCRIPTS["bash"])
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    ask = f'source ./script; COMP_WORDS=(cloche exec {typed}) COMP_CWORD=2; _cloche; printf %s "${{COMPREPLY[@]}}"'
    with Sandbox.create(engine="host", name="my box"):
        done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (offered, "")


def test_without_a_shell_the_known_ones_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    assert "expected one of: bash, zsh, fish" in capsys.readouterr().err
