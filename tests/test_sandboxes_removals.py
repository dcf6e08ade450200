"""Removing what sandboxes stand on, with real sandboxes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from cloche.errors import ImageNotFound, InvalidRequest, RuntimeNotFound
from cloche.images import find_image, import_archive
from cloche.sandboxes.removals import remove_image, remove_runtime
from tests.security.lab import keeper_of, wait_until
from tests.test_images_interpreters import make_program

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_machine(tmp_path_factory.mktemp("small"))


def make_small_machine(folder: Path) -> Path:
    """An archive with a shell and `id` of this machine, and the libraries that they need."""
    files = {"bin/sh": "/bin/dash", "bin/bash": "/bin/bash", "bin/id": "/usr/bin/id"}
    for program in list(files.values()):
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        files |= {name[1:]: name for name in re.findall(r"(/\S+) \(0x", said)}
    for name, source in files.items():
        (folder / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(source), folder / "root" / name)
    subprocess.run(["tar", "-C", folder / "root", "-czf", folder / "small.tar.gz", "."], check=True)
    return folder / "small.tar.gz"


def test_an_image_stays_while_a_sandbox_stands_on_it(home: Path, archive: Path) -> None:
    import_archive(home, "small", archive)
    with Sandbox.create(image="small") as box:
        with pytest.raises(InvalidRequest, match=f"the image 'small' is in use by {box.id}; .*cloche rm {box.id}"):
            remove_image("small")
        assert box.commands.run("id -u").stdout == "1000\n"
    remove_image("small")
    with pytest.raises(ImageNotFound):
        find_image(home, "small")


def test_one_that_was_killed_stands_on_nothing(home: Path, archive: Path) -> None:
    import_archive(home, "small", archive)
    with Sandbox.create(image="small") as box:
        os.kill(keeper_of(box), signal.SIGKILL)
        wait_until(lambda: not box.is_running(), "it has ended")
        remove_image("small")


def test_made_and_removed_at_the_same_moment_one_of_both_wins_wholly(home: Path, archive: Path) -> None:
    for _ in range(5):
        import_archive(home, "small", archive)
        with ThreadPoolExecutor(2) as threads:
            making = threads.submit(Sandbox.create, image="small")
            removal = threads.submit(remove_image, "small")
        if removal.exception() is None:
            assert isinstance(making.exception(), ImageNotFound)
        else:
            use_and_end(making)
            remove_image("small")


def use_and_end(making: Future[Sandbox]) -> None:
    with making.result() as box:
        assert box.commands.run("id -u").stdout == "1000\n"


def test_a_runtime_stays_while_a_sandbox_was_made_for_it(home: Path) -> None:
    make_program(home / "runtimes/node-77.1.2/bin/node", "#!/bin/sh\necho v77.1.2\n")
    with Sandbox.create("node77") as box:
        assert box.commands.run("node --version").stdout == "v77.1.2\n"
        with pytest.raises(InvalidRequest, match=f"node-77.1.2 is in use by {box.id}"):
            remove_runtime("node 77")
    with Sandbox.create("bash"):
        assert remove_runtime("node77") == "node-77.1.2"
    with pytest.raises(RuntimeNotFound, match="there is no node 77"):
        Sandbox.create("node77")
