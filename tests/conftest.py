"""What all tests share: a skipped test is a failure, and CLOCHE_HOME is a folder of the test's own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

from cloche import Sandbox

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.driver import Driver

# The same examples each time, on machines of any speed; `make soak` looks for others.
settings.register_profile("tests", deadline=None, database=None, derandomize="CLOCHE_FUZZ" not in os.environ)
settings.load_profile("tests")

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))


def _refuse_skip(report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"a skipped test proves nothing, so it counts as failed: {report.longrepr}"
    return report


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """CLOCHE_HOME, empty; its path is short, as sockets lie below it."""
    path = Path(tempfile.mkdtemp(prefix="cl-"))
    path.chmod(0o711)
    monkeypatch.setenv("CLOCHE_HOME", str(path))
    yield path
    remove_home(path)


@pytest.fixture
def box(home: Path) -> Iterator[Sandbox]:
    """A sandbox that is called `box`."""
    del home
    with Sandbox.create(name="box") as box:
        yield box


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "python" in metafunc.fixturenames:
        from tests import pythons

        metafunc.parametrize("python", pythons.INTERPRETERS.values(), ids=list(pythons.INTERPRETERS), indirect=True)


@pytest.fixture
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    """The Python driver, in each interpreter that there is."""
    from tests import pythons

    with pythons.start(request.param, tmp_path) as driver:
        yield driver


@pytest.fixture(scope="session")
def packages() -> Path:
    """A folder with the packages whose values are shown well."""
    from tests import pythons

    return pythons.install_packages()


@pytest.fixture(scope="module")
def rich_python(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """The Python driver where those packages can be imported; one for all tests of a file, as they are slow to import."""
    from tests import pythons

    folder = tmp_path_factory.mktemp("rich")
    env = {"PYTHONPATH": str(packages), "HOME": str(folder), "PYTHONWARNINGS": "error"}
    with pythons.start(sys.executable, folder, **env) as driver:
        yield driver


def remove_home(path: Path) -> None:
    """Disks may still be copied ahead of need into it, in the background."""
    deadline = time.monotonic() + 10
    while path.exists():
        shutil.rmtree(path, ignore_errors=time.monotonic() < deadline)
