from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cloche.images import find_host_image, import_archive
from cloche.images.inventory import list_host_runtimes, list_runtimes
from tests.test_images_archives import machine, make_archive, program
from tests.test_images_interpreters import make_program

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_runtime_of_this_machine_has_its_full_version_its_origin_and_a_path(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    make_program(tmp_path / "versions/3.77.1/bin/python3.77")
    make_program(tmp_path / "versions/3.78.2/bin/python3.78")
    make_program(home / "runtimes/node-77.1.2/bin/node")
    listed = {each.runtime: each for each in list_host_runtimes(home)}
    assert list(listed) == list(find_host_image(home).interpreters)
    assert (listed["python3.77"].version, listed["python3.77"].origin) == ("3.77.1", "pyenv")
    # Behind its shim, as it lacks a pip.
    assert listed["python3.77"].path == f"{tmp_path}/versions/3.77.1/bin/python3.77"
    assert (listed["node77"].version, listed["node77"].origin) == ("77.1.2", "Cloche")
    assert listed["bash"].origin == "system package"
    assert re.fullmatch(r"5\.\d+\.\d+", listed["bash"].version)


def test_what_is_meant_by_a_language_alone_is_marked_with_a_note_where_it_is_not_the_default(
    home: Path, tmp_path: Path
) -> None:
    paths = ("usr/local/bin/python3.11", "usr/local/bin/python3.13", "bin/bash")
    image = import_archive(home, "mine", make_archive(tmp_path / "a.tar", *machine(*map(program, paths))))
    listed = list_runtimes(image, lambda runtime, path: ("there", "3.13.2" if runtime == "python3.13" else None))
    assert [(each.runtime, each.version, each.is_default, each.path) for each in listed] == [
        ("python3.13", "3.13.2", True, "/usr/local/bin/python3.13"),
        ("python3.11", "3.11", False, "/usr/local/bin/python3.11"),
        ("bash", "", True, "/bin/bash"),
    ]
    assert listed[0].note.endswith("this is 3.13, the nearest newer one")
