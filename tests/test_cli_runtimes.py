"""`cloche runtimes`, once with a real Node.js, as the machine's npm finds it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.cli.completion import candidates
from cloche.cli.main import main
from cloche.images import import_archive
from tests.conftest import remove_home
from tests.test_images_interpreters import make_program
from tests.test_images_uv import FULL, MINOR, build
from tests.test_sandboxes_removals import archive

if TYPE_CHECKING:
    from collections.abc import Iterator

# Fixtures of other files.
__all__ = ["archive", "build"]

VERSIONS = """
const {execSync} = require("child_process")
console.log(process.version.split(".")[0], execSync("npm --version && npx --version").toString().split(".")[0])
"""


def call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "cloche", *words], capture_output=True, text=True, timeout=110)


@pytest.fixture(scope="module")
def home_with_node() -> Iterator[Path]:
    """One download of some 50 MB for all tests."""
    with TemporaryDirectory(prefix="cl-", ignore_cleanup_errors=True) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOCHE_HOME", folder)
        Path(folder).chmod(0o711)
        done = call("runtimes", "add", "node", "22")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("added node22 (22.")
        yield Path(folder)
        remove_home(Path(folder))


@pytest.fixture
def with_node(home_with_node: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLOCHE_HOME", str(home_with_node))
    return home_with_node


def test_a_node_that_was_added_runs_at_once_and_has_its_npm(with_node: Path) -> None:
    del with_node
    node, npm = call("run", "--runtime", "node22", "-c", VERSIONS).stdout.split()
    assert (node, npm) == ("v22", "10")


def test_nothing_else_changes_by_it(with_node: Path) -> None:
    del with_node
    default = call("runtimes", "--json").stdout
    (node,) = [each for each in json.loads(default) if each["language"] == "node" and each["default"]]
    with Sandbox.create("bash") as box:
        assert box.commands.run("node --version").stdout.strip() == f"v{node['version']}"


def test_the_box_can_not_write_to_it_and_sees_nothing_beside_it(with_node: Path) -> None:
    with Sandbox.create("node22", user="root") as box:
        folder = box.commands.run("dirname $(dirname $(which node))").stdout.strip()
        assert folder.startswith("/opt/cloche/runtimes/node-22.")
        assert box.commands.run(f"touch {folder}/x").exit_code != 0
        assert box.commands.run(["ls", str(with_node)]).exit_code != 0


def test_a_package_is_installed_with_its_npm_and_found_by_its_node(with_node: Path, tmp_path: Path) -> None:
    del with_node
    (tmp_path / "package.json").write_text('{"name": "found", "version": "1.0.0", "main": "index.js"}')
    (tmp_path / "index.js").write_text("module.exports = 'found it'")
    with Sandbox.create("node22", workspace=str(tmp_path)) as box:
        installed = box.commands.run("cd ~ && npm install --global --install-links /workspace")
        assert installed.exit_code == 0, installed.stderr
        assert box.commands.run(["node", "-p", "require('found')"]).stdout == "found it\n"


def test_one_that_is_there_is_told_of(with_node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del with_node
    assert main(["runtimes", "add", "node@22"]) == 0
    assert "node22 is there already: 22." in capsys.readouterr().out
    assert main(["runtimes", "add", "node", "22", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["runtime"], answer["from"], answer["added"]) == ("node22", "Cloche", False)


def test_a_python_that_was_added_runs_at_once(build: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(build))
    assert f"added python{MINOR} ({FULL})" in call("runtimes", "add", "python", FULL).stdout
    code = "import sys, json, ssl, ctypes; print(sys.executable, sys.prefix)"
    found = call("run", "--runtime", f"python{MINOR}", "-c", code)
    inside = f"/opt/cloche/runtimes/python-{FULL}"
    assert found.stdout.split() == [f"{inside}/bin/python{MINOR}", inside], found.stderr
    with Sandbox.create(f"python{MINOR}") as box:
        assert box.commands.run("python -c 'import sys; print(sys.prefix)'").stdout == f"{inside}\n"


def test_they_are_listed_with_what_is_the_default(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_program(home / "runtimes/node-99.1.2/bin/node")
    assert main(["runtimes"]) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    rows = {cells[0]: [cell.strip() for cell in cells[1:] if cell.strip()] for cells in lines}
    assert rows["RUNTIME"] == ["VERSION", "FROM", "DEFAULT", "PATH"]
    assert rows["node99"] == ["99.1.2", "Cloche", "/opt/cloche/runtimes/node-99.1.2/bin/node"]
    assert "default" in rows["bash"]


def test_those_of_another_image_are_asked_inside_it(
    home: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_archive(home, "small", archive)
    assert main(["runtimes", "--image", "small", "--json"]) == 0
    (bash,) = json.loads(capsys.readouterr().out)
    assert (bash["from"], bash["path"], bash["version"].count(".")) == ("image small", "/bin/bash", 2)


def test_a_language_that_an_image_lacks_is_told(home: Path, archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_archive(home, "small", archive)
    assert main(["runtimes", "--image", "small"]) == 0
    assert capsys.readouterr().err == "cloche: there is no node\ncloche: there is no python\n"


def test_one_is_removed_and_what_is_not_cloches_is_not(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_program(home / "runtimes/node-99.1.2/bin/node")
    assert main(["runtimes", "remove", "node", "99"]) == 0
    assert capsys.readouterr().out == "removed node-99.1.2\n"
    assert main(["runtimes", "remove", "bash"]) == 125
    assert "not Cloche's to remove: it comes from" in capsys.readouterr().err


def test_none_is_added_to_another_image(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del home
    assert main(["runtimes", "--image", "mine", "add", "node", "22"]) == 125
    assert "added to 'host' alone" in capsys.readouterr().err


def test_what_is_asked_for_and_is_not_there_leads_to_the_command(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    del home
    assert main(["run", "--runtime", "node98", "-c", "1"]) == 125
    assert "To get it: cloche runtimes add node 98, or nvm install 98" in capfd.readouterr().err


def test_actions_languages_and_what_was_added_are_completed(home: Path) -> None:
    (home / "runtimes/node-99.1.2").mkdir(parents=True)
    assert candidates(["runtimes", ""]) == ["add", "remove"]
    assert candidates(["runtimes", "add", "n"]) == ["node"]
    assert candidates(["runtimes", "--image", "host", "add", ""]) == ["node", "python"]
    assert candidates(["runtimes", "remove", ""]) == ["node-99.1.2"]
