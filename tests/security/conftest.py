"""The boxes that attacks are made from: one of each kind for a file's tests, and fresh ones where harm is done."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloche import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES = os.environ.get("TEST_ENGINES", "embedded:crun embedded:runc").split()
Make = Callable[..., Sandbox]


@pytest.fixture(scope="session")
def lab_home() -> Iterator[Path]:
    """CLOCHE_HOME for all of them: an image is found once."""
    with tempfile.TemporaryDirectory(prefix="cl-") as folder:
        path = Path(folder)
        path.chmod(0o711)
        yield path


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, lab_home: Path) -> Iterator[str]:
    """The name of an engine; CLOCHE_HOME is set while its tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOCHE_HOME", str(lab_home))
        patch.setenv("CANARY_OF_THE_HOST", "sings")
        yield request.param


@pytest.fixture(scope="module")
def sandbox(engine: str) -> Iterator[Sandbox]:
    """A box whose code is an ordinary user."""
    with Sandbox.create(engine=engine) as box:
        yield box


@pytest.fixture(scope="module", params=["user", "root"])
def any_box(engine: str, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A box whose code is an ordinary user, and one whose code is root there."""
    with Sandbox.create(engine=engine, user=request.param) as box:
        yield box


@pytest.fixture
def make(engine: str) -> Iterator[Make]:
    """Makes boxes that end with the test."""
    made: list[Sandbox] = []

    def create(**options: Any) -> Sandbox:
        box = Sandbox.create(engine=engine, **options)
        made.append(box)
        return box

    yield create
    for box in made:
        box.kill()
