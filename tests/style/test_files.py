"""Each file has its test, each generated file is fresh, and only the product is in the tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

UNTESTED = {
    "errors.py": "classes without behaviour; every other test raises them",
    "models.py": "plain data; every other test reads it",
    "version.py": "one constant",
    "__main__.py": "one call of cli/main.py",
    "engines/base.py": "interfaces and plain data",
    "images/base.py": "plain data",
}
"""Files of cloche/ without a test of their own, and why."""

FORBIDDEN = {
    r"\bTODO\b": "a thing to do is an issue",
    r"\bFIXME\b": "a thing to do is an issue",
    r"\bXXX\b": "a thing to do is an issue",
    r"/work/(main|shared)": "a path of one machine",
    r"except\s*(Exception|BaseException)?\s*:\s*(#.*)?\n\s+pass\b": "an error that is swallowed hides the next one",
    r"pytest\.mark\.(skip|xfail)|pytest\.(skip|xfail|importorskip)\(": "a skipped test proves nothing",
    r"\b(Claude|Anthropic|Copilot|ChatGPT) (Code|session|wrote|generated)\b": "who wrote it is in the history",
}
"""Patterns that may not be in the tree, and what to do in their place."""

MAY_SAY_SO = {"tests/style/test_files.py"}


def tracked() -> list[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def sources() -> list[str]:
    package = ROOT / "cloche"
    return sorted(
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.name != "__init__.py" and "_bin" not in path.parts
    )


def is_generated(path: Path) -> bool:
    return path.read_text().split("\n", 1)[0].lower().startswith("# generated")


@pytest.mark.parametrize("source", sources())
def test_a_file_has_its_test(source: str) -> None:
    path = ROOT / "cloche" / source
    names = [part.strip("_") for part in path.relative_to(ROOT / "cloche").with_suffix("").parts]
    wanted = {f"test_{'_'.join(names[start:])}" for start in range(len(names))}
    there = {test.stem for test in (ROOT / "tests").rglob("test_*.py")}
    if not is_generated(path) and source not in UNTESTED:
        assert wanted & there, f"cloche/{source} needs one of {', '.join(sorted(wanted))}"


def test_each_exception_is_about_a_file_that_is_there() -> None:
    assert set(UNTESTED) <= set(sources())


@pytest.mark.parametrize("tool", ["generate_sync.py", "generate_guarantees.py", "generate_reference.py"])
def test_generated_files_are_fresh(tool: str) -> None:
    command = [sys.executable, ROOT / "tools" / tool, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_what_does_not_belong_is_not_in_the_tree(pattern: str) -> None:
    found: list[str] = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if name in MAY_SAY_SO or path.suffix not in (".py", ".c", ".h", ".md", ".toml", ".sh", "") or name == "LICENSE":
            continue
        text = path.read_text(errors="replace")
        found += [f"{name}:{text.count(chr(10), 0, match.start()) + 1}" for match in re.finditer(pattern, text)]
    assert not found, f"{FORBIDDEN[pattern]}: {', '.join(found)}"


def sleeps_of(path: Path) -> list[str]:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = [(call, getattr(call.func, "attr", getattr(call.func, "id", ""))) for call in calls]
    return [
        f"{path.name}:{call.lineno}"
        for call, name in names
        for seconds in call.args[:1]
        if name == "sleep" and not (isinstance(seconds, ast.Constant) and float(str(seconds.value)) < 0.1)
    ]


def test_no_test_sleeps_for_a_time() -> None:
    found = [call for path in (ROOT / "tests").rglob("*.py") for call in sleeps_of(path)]
    assert not found, "wait for a condition with a deadline, not for a time; a pause of a poll is below 0.1 s"


def test_no_lock_file_names_a_package_index() -> None:
    assert not {path.name for path in tracked()} & {"uv.lock", "poetry.lock", "package-lock.json"}
