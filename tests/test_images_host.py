from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche.images.host import find_host_image
from tests.test_images_interpreters import make_program

if TYPE_CHECKING:
    from cloche.images.base import Image


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def image(home: Path) -> Image:
    return find_host_image(home)


def test_usr_is_bound_and_nothing_of_home_root_var_or_etc(image: Image) -> None:
    targets = [bind.target for bind in image.binds]
    assert targets[0] == "/usr"
    toolchains = tuple(str(Path.home() / name) for name in (".pyenv/versions/", ".local/share/uv/python/", ".nvm/"))
    for target in targets[1:]:
        assert target.startswith((*toolchains, "/opt/", "/bin", "/lib", "/sbin"))


def test_every_bind_has_its_place_in_the_root_file_system(image: Image) -> None:
    for bind in image.binds:
        assert image.rootfs.joinpath(bind.target.lstrip("/")).is_dir()


def test_its_owners_and_modes_are_those_of_a_machine(image: Image) -> None:
    def look(name: str) -> tuple[int, int]:
        found = (image.rootfs / name).lstat()
        return stat.S_IMODE(found.st_mode), found.st_uid

    assert look("tmp") == look("var/tmp") == (0o1777, 0)
    assert look("root") == look("etc") == look("") == (0o755, 0)
    assert look("home/user") == (0o755, 1000)
    assert look("etc/passwd") == (0o644, 0)


def test_it_is_the_same_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        image = find_host_image(tmp_path)
    finally:
        os.umask(before)
    for folder, _, files in os.walk(image.rootfs):
        assert os.lstat(folder).st_mode & 0o005 == 0o005, folder
        for name in files:
            assert os.lstat(f"{folder}/{name}").st_mode & 0o004, name


def test_links_of_a_merged_usr_are_as_on_this_machine(image: Image) -> None:
    for name in ("bin", "lib"):
        if Path("/", name).is_symlink():
            assert (image.rootfs / name).readlink() == Path("/", name).readlink()
        else:
            assert f"/{name}" in [bind.target for bind in image.binds]


def test_this_machines_python_is_among_its_interpreters(image: Image) -> None:
    assert any(runtime.startswith("python3.") for runtime in image.interpreters)
    assert image.interpreters["bash"] in ("/usr/bin/bash", "/bin/bash")


def test_the_second_call_reads_a_file_and_is_fast(home: Path, image: Image) -> None:
    times: list[float] = []
    for _ in range(50):
        start = time.perf_counter()
        assert find_host_image(home) == image
        times.append(time.perf_counter() - start)
    # The figure is 0.3 ms; a machine that is busy with other tests gets some room.
    assert sorted(times)[5] < 0.001


def test_a_toolchain_that_was_installed_since_makes_another_image(
    home: Path, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    make_program(tmp_path / "versions/3.77.1/bin/python3.77")
    with_one = find_host_image(home)
    assert with_one.rootfs != image.rootfs
    assert "python3.77" in with_one.interpreters
    make_program(tmp_path / "versions/3.77.1/bin/python3.78")
    assert "python3.78" in find_host_image(home).interpreters


def test_first_calls_at_the_same_moment_get_one_image_and_leave_nothing_else(tmp_path: Path) -> None:
    found: list[Image] = []
    threads = [threading.Thread(target=lambda: found.append(find_host_image(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({image.rootfs for image in found}) == 1
    assert len(list((tmp_path / "images").iterdir())) == 1


def test_an_image_whose_record_was_lost_is_made_anew(tmp_path: Path) -> None:
    image = find_host_image(tmp_path)
    (image.rootfs.parent / "image.json").write_text("")
    assert find_host_image(tmp_path) == image
