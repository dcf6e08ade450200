"""Ordinary users of this machine, one with what `cloche setup` prepares and one without, and a copy of Cloche for them."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloche.engines.cgroups import find_hierarchies, parent_of
from cloche.engines.prepare import V1_CONTROLLERS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TOOLS = ("_pytest", "pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "pytest_timeout", "hypothesis")
HELPERS = ("_hypothesis_globals", "_hypothesis_pytestplugin", "_hypothesis_ftz_detector", "sortedcontainers")
SECONDS = 500


@dataclass(frozen=True)
class Ordinary:
    """A user, with a folder of their own."""

    name: str
    folder: Path
    python: str
    cgroup: Path | None = None
    """Where its programs are started."""

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """A program of that user's."""
        enter = f"echo $$ >{self.cgroup}/cgroup.procs; " if self.cgroup else ""
        command = ["sh", "-c", f'{enter}exec "$@"', "sh"]
        command += ["runuser", "-u", self.name, "--", "env", "-i", *self._environment(environment), self.python, *words]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder / "tree"
        )

    def run(self, *words: str, **environment: str) -> tuple[int, str]:
        """Its exit code and what it said."""
        with self.start(*words, **environment) as process:
            said, _ = process.communicate(timeout=SECONDS)
        return process.returncode, said

    def ask(self, code: str, **environment: str) -> Any:
        """What a piece of code prints last, as JSON."""
        status, said = self.run("-c", f"import json\nfrom cloche import *\n{code}", **environment)
        assert status == 0, said
        return json.loads(said.splitlines()[-1])

    def _environment(self, more: dict[str, str]) -> list[str]:
        values = {
            "HOME": str(self.folder),
            "PATH": "/usr/bin:/bin",
            "CLOCHE_HOME": str(self.folder / "data"),
            "PYTHONPATH": f"{self.folder}/tree:{self.folder}/site",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DEBUG_TEMPROOT": str(self.folder / "temporary"),
            **more,
        }
        return [f"{name}={value}" for name, value in values.items()]


@pytest.fixture(scope="session")
def prepared() -> Iterator[Ordinary]:
    """One for whom root has called `cloche setup`."""
    with tempfile.TemporaryDirectory(prefix="cl-") as place:
        user = _make_user("cloche-prepared", Path(place))
        done = subprocess.run([sys.executable, "-m", "cloche", "setup", user.name], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        yield user
        _remove_user(user)


@pytest.fixture(scope="session")
def unprepared() -> Iterator[Ordinary]:
    """One for whom nobody has done anything: no cgroups, no ids."""
    with tempfile.TemporaryDirectory(prefix="cl-") as place:
        user = _make_user("cloche-unprepared", Path(place))
        for option, path in (("--del-subuids", "/etc/subuid"), ("--del-subgids", "/etc/subgid")):
            for line in Path(path).read_text().splitlines():
                name, first, count = line.split(":")
                if name == user.name:
                    span = f"{first}-{int(first) + int(count) - 1}"
                    subprocess.run(["usermod", option, span, user.name], check=True)
        yield user
        _remove_user(user)


@pytest.fixture
def delegated(prepared: Ordinary) -> Iterator[Ordinary]:
    """As systemd starts a user's programs on v2: in a cgroup below one that is the user's own."""
    v2 = find_hierarchies().v2
    assert v2 is not None
    top = v2 / "cloche-delegated"
    session = top / "session"
    session.mkdir(parents=True, exist_ok=True)
    for folder in (top, session):
        for path in (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control"):
            shutil.chown(path, prepared.name)
    yield replace(prepared, cgroup=session)
    for folder in (*top.glob("cloche-*"), session, top):
        folder.rmdir()


def _make_user(name: str, folder: Path) -> Ordinary:
    folder.chmod(0o755)
    if name not in {user.pw_name for user in pwd.getpwall()}:
        subprocess.run(["useradd", "--no-create-home", "--home-dir", str(folder), name], check=True)
    else:
        subprocess.run(["usermod", "--home", str(folder), name], check=True)
    for part in ("cloche", "tests"):
        shutil.copytree(ROOT / part, folder / "tree" / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder / "tree")
    (folder / "temporary").mkdir()
    _copy_tools(folder / "site")
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
    for path in (folder, folder / "temporary"):
        shutil.chown(path, name)
    return Ordinary(name, folder, _find_python(name))


def _copy_tools(site: Path) -> None:
    """The checkout and its interpreter may lie where only root can read; these are plain Python, for any version."""
    site.mkdir()
    for name in (*TOOLS, *HELPERS):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        source = Path(spec.origin)
        if source.name == "__init__.py":
            shutil.copytree(source.parent, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, site)
    for info in Path(pytest.__file__).parents[1].glob("pytest*.dist-info"):
        shutil.copytree(info, site / info.name)


def _find_python(name: str) -> str:
    """An interpreter that this user can start."""
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = "import sys; sys.exit(sys.version_info < (3, 11))"
        done = subprocess.run(["runuser", "-u", name, "--", program, "-I", "-c", probe], capture_output=True)
        if done.returncode == 0:
            return program
    raise AssertionError("an ordinary user needs Python 3.11: apt-get install python3")


def _remove_user(user: Ordinary) -> None:
    code = "from cloche import *\nfor box in Sandbox.list(): box.kill()"
    user.run("-c", code)
    uid = pwd.getpwnam(user.name).pw_uid
    v1 = find_hierarchies().v1
    for folder in {v1[name] / parent_of(uid) for name in V1_CONTROLLERS if name in v1}:
        if folder.is_dir():
            folder.rmdir()
    subprocess.run(["userdel", user.name], check=True, capture_output=True)
