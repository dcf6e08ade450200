"""What all tests share: a skipped test is a failure, and CLOCHE_HOME is a folder of the test's own."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

from cloche import Sandbox

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

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


def remove_home(path: Path) -> None:
    """Disks may still be copied ahead of need into it, in the background."""
    deadline = time.monotonic() + 10
    while path.exists():
        shutil.rmtree(path, ignore_errors=time.monotonic() < deadline)
