from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cloche.images.holds import hold, take

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("image", "folder"), [("mine", "images/mine"), ("host", "runtimes")])
def test_who_removes_waits_for_all_who_make_a_sandbox_on_it(tmp_path: Path, image: str, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    done: list[str] = []

    def remove() -> None:
        with take(tmp_path, image):
            done.append("removed")

    with ThreadPoolExecutor() as threads:
        with hold(tmp_path, image), hold(tmp_path, image):
            removal = threads.submit(remove)
            with pytest.raises(TimeoutError):
                removal.result(0.05)
            done.append("made")
        removal.result(10)
    assert done == ["made", "removed"]


def test_who_makes_one_waits_for_the_removal_and_sees_the_name_s_next_owner(tmp_path: Path) -> None:
    folder = tmp_path / "images/mine"
    folder.mkdir(parents=True)

    def make() -> list[str]:
        with hold(tmp_path, "mine"):
            return [path.name for path in (tmp_path / "images").iterdir()]

    with ThreadPoolExecutor() as threads:
        with take(tmp_path, "mine"):
            making = threads.submit(make)
            folder.rename(tmp_path / "gone")
        assert making.result(10) == []


@pytest.mark.parametrize("image", ["nothing", "../../etc", "", "host"])
def test_what_is_not_there_is_held_by_nobody(tmp_path: Path, image: str) -> None:
    with hold(tmp_path, image), take(tmp_path, image):
        pass
