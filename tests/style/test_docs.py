"""What the documents show works: every block marked `python run` is run, every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```console run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"# > (.*)")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")


def examples(pattern: re.Pattern[str]) -> list[object]:
    return [
        pytest.param(match[1], id=f"{document.name}:{text.count(chr(10), 0, match.start()) + 1}")
        for document in DOCUMENTS
        for text in [document.read_text()]
        for match in pattern.finditer(text)
    ]


@pytest.mark.parametrize("code", examples(BLOCK))
def test_an_example_runs_and_prints_what_it_says(code: str, home: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == OUTPUT.findall(code)


@pytest.mark.parametrize("session", examples(SESSION))
def test_a_session_shows_what_a_shell_shows(
    session: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    commands = re.findall(r"^\$ (.*)", session, re.MULTILINE)
    # One shell for all of it; the line before each output says which command it is of.
    script = "".join(f"echo {shlex.quote(f'$ {command}')}; {command}\n" for command in commands)
    done = subprocess.run(["bash", "-c", f"exec 2>&1\n{script}"], capture_output=True, text=True, cwd=tmp_path)
    wanted = re.escape(session).replace("…", "[^\n]*")
    assert re.fullmatch(wanted, done.stdout), done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    broken = [target for target in LINK.findall(document.read_text()) if not (document.parent / target).exists()]
    assert not broken


def test_the_readme_has_an_example() -> None:
    assert BLOCK.search((ROOT / "README.md").read_text())


def test_the_changelog_begins_with_the_version_that_is_built() -> None:
    from cloche.version import __version__

    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] in (__version__, "Unreleased")
