"""The engines that all pass one list of behaviours, driven by the table of abilities."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from cloche import Sandbox
from cloche.engines import engine_named
from cloche.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENGINES = os.environ.get("TEST_ENGINES", "host embedded:crun embedded:runc").split()
"""An ordinary user runs the suite with those that are another thing for them."""
DEADLINE = 10.0
Make = Callable[..., Sandbox]


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """CLOCHE_HOME for all of them: an image is found once."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="cl-") as folder:
        path = Path(folder)
        path.chmod(0o711)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLOCHE_HOME", folder)
            yield path


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, shared_home: Path) -> str:
    """The name of an engine."""
    return request.param


@pytest.fixture(scope="module")
def sandbox(engine: str) -> Iterator[Sandbox]:
    """One box for all the tests of a file that leave it as it was."""
    with Sandbox.create(engine=engine) as box:
        yield box


@pytest.fixture
def make(engine: str) -> Iterator[Make]:
    """Makes boxes that end with the test."""
    made: list[Sandbox] = []

    def create(*args: Any, **options: Any) -> Sandbox:
        box = Sandbox.create(*args, engine=engine, **options)
        made.append(box)
        return box

    yield create
    for box in made:
        box.kill()


@pytest.fixture
def make_or_refuse(engine: str, make: Make) -> Callable[..., Sandbox | None]:
    """A box that keeps a promise; None, and the refusal is asserted, where the engine can't."""

    def create(promise: str, **options: Any) -> Sandbox | None:
        if engine_named(engine).abilities()[promise].enforced != "no":
            return make(**options)
        with pytest.raises(Unsupported, match=promise):
            make(**options)
        return None

    return create


@pytest.fixture
def wait_for() -> Callable[[Callable[[], object]], None]:
    """Waits for a condition, with a deadline."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.01)

    return wait
