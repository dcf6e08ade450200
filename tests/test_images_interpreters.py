from __future__ import annotations

import subprocess
from pathlib import Path

from cloche.images.interpreters import Interpreter, add_shims, choose, find_interpreters


def make_program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_interpreters_are_found_by_name_and_only_if_they_are_programs(tmp_path: Path) -> None:
    for name in ("python3.12", "python3", "python3.12-config", "node", "bash", "bashbug", "xpython3.1"):
        make_program(tmp_path / "usr/bin" / name)
    (tmp_path / "usr/bin/python3.13").write_text("no program")
    (tmp_path / "usr/bin/python3.14").mkdir()
    found = find_interpreters(str(tmp_path), "/usr/bin", lambda _: "20.1.2")
    assert [(i.runtime, i.path) for i in found] == [
        ("bash", "/usr/bin/bash"),
        ("node20", "/usr/bin/node"),
        ("python3.12", "/usr/bin/python3.12"),
    ]


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert list(find_interpreters(str(tmp_path), "/usr/bin", lambda _: None)) == []


def test_a_node_that_does_not_tell_its_version_has_none(tmp_path: Path) -> None:
    make_program(tmp_path / "bin/node")
    assert [i.runtime for i in find_interpreters(str(tmp_path), "/bin", lambda _: None)] == ["node"]


def test_the_first_of_a_runtime_is_chosen_and_the_best_runtime_comes_first() -> None:
    found = [Interpreter("python3.9", "/a"), Interpreter("python3.12", "/b"), Interpreter("python3.12", "/c")]
    assert list(choose(found).items()) == [("python3.12", "/b"), ("python3.9", "/a")]


def test_an_interpreter_in_a_shared_folder_answers_to_its_usual_names_through_shims(tmp_path: Path) -> None:
    paths = add_shims({"python3.11": "/usr/bin/python3.11"}, seen_from="", root=str(tmp_path))
    assert paths == {"python3.11": "/opt/cloche/python3.11/python"}
    shims = tmp_path / "opt/cloche/python3.11"
    assert sorted(path.name for path in shims.iterdir()) == ["pip", "pip3", "python", "python3", "python3.11"]
    assert (shims / "python").readlink() == Path("/usr/bin/python3.11")
    assert (shims / "pip").read_text() == '#!/bin/sh\nexec /usr/bin/python3.11 -m pip "$@"\n'


def test_an_interpreter_in_a_folder_of_its_own_needs_shims_only_where_names_are_missing(tmp_path: Path) -> None:
    for name in ("python3.12", "python3", "python", "pip"):
        make_program(tmp_path / "opt/whole/bin" / name)
    make_program(tmp_path / "opt/bare/bin/python3.13")
    there = {"python3.12": "/opt/whole/bin/python3.12", "python3.13": "/opt/bare/bin/python3.13"}
    paths = add_shims(there, seen_from=str(tmp_path), root=str(tmp_path))
    assert paths == {"python3.12": "/opt/whole/bin/python3.12", "python3.13": "/opt/cloche/python3.13/python"}


def test_a_python_2_never_answers_to_python3(tmp_path: Path) -> None:
    add_shims({"python2.7": "/usr/bin/python2.7"}, seen_from="", root=str(tmp_path))
    assert not (tmp_path / "opt/cloche/python2.7/python3").is_symlink()


def test_a_virtual_environment_made_through_a_shim_works(tmp_path: Path) -> None:
    system = Path("/usr/bin/python3").resolve()
    add_shims({system.name: str(system)}, seen_from="", root=str(tmp_path))
    python = tmp_path / "opt/cloche" / system.name / "python"
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    code = "import sys; import json; print(sys.prefix != sys.base_prefix)"
    done = subprocess.run([tmp_path / "venv/bin/python", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "True\n"
