from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.images import toolchains
from tests.test_images_interpreters import make_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def pyenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("UV_PYTHON_INSTALL_DIR", "NVM_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path / "pyenv/versions"


def found_in(folder: Path) -> list[toolchains.Toolchain]:
    found = toolchains.find_toolchains(folder / "home")
    return [toolchain for toolchain in found if toolchain.folder.startswith(str(folder))]


def of(folder: Path) -> list[str]:
    return [toolchain.folder for toolchain in found_in(folder)]


def test_versions_with_an_interpreter_are_found_the_newest_first(pyenv: Path) -> None:
    for version in ("3.12.2", "3.12.10", "3.9.1"):
        make_program(pyenv / version / "bin" / f"python{version.rpartition('.')[0]}")
    assert of(pyenv) == [f"{pyenv}/3.12.10", f"{pyenv}/3.12.2", f"{pyenv}/3.9.1"]


def test_what_has_no_interpreter_or_is_a_link_or_has_another_name_is_not_bound(pyenv: Path) -> None:
    make_program(pyenv / "3.12.1/bin/python3")
    make_program(pyenv / "my-project/bin/python3.12")
    make_program(pyenv.parent / "elsewhere/bin/python3.12")
    (pyenv / "3.12.2").symlink_to(pyenv.parent / "elsewhere")
    assert of(pyenv) == []


def test_a_toolchain_comes_before_the_system(pyenv: Path) -> None:
    make_program(pyenv / "3.11.1/bin/python3.11")
    found = toolchains.find_host_interpreters(found_in(pyenv))
    assert found["python3.11"] == f"{pyenv}/3.11.1/bin/python3.11"


def test_uv_and_nvm_are_looked_at_too(pyenv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("NVM_DIR", str(tmp_path / "nvm"))
    uv = tmp_path / "uv/cpython-3.13.1-linux-x86_64-gnu"
    nvm = tmp_path / "nvm/versions/node/v22.3.0"
    make_program(uv / "bin/python3.13")
    make_program(nvm / "bin/node")
    assert of(tmp_path) == [str(uv), str(nvm)]


def test_a_node_is_asked_for_its_version_and_nothing_else_is_believed(tmp_path: Path) -> None:
    for text, version in (
        ("echo v20.11.1", "20.11.1"),
        ("echo v21.0.0-pre", "21.0.0"),
        ("echo hello", None),
        ("exit 1", None),
    ):
        make_program(tmp_path / "node", f"#!/bin/sh\n{text}\n")
        assert toolchains.ask_node_version(str(tmp_path / "node")) == version


def test_a_node_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchains, "VERSION_SECONDS", 0.2)
    make_program(tmp_path / "node", "#!/bin/sh\nexec tail -f /dev/null\n")
    assert toolchains.ask_node_version(str(tmp_path / "node")) is None
