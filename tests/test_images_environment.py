from __future__ import annotations

from cloche.images.environment import make_environment


def test_the_best_interpreter_of_each_language_comes_after_what_the_user_installed() -> None:
    env = make_environment(
        {"python3.12": "/opt/p/bin/python3.12", "python3.9": "/opt/q/bin/python3.9", "node20": "/opt/n/node"}
    )
    assert env["PATH"].startswith("/home/user/.local/bin:/opt/p/bin:/opt/n:/usr/local/bin:/usr/bin:/bin:")


def test_folders_of_the_system_are_in_the_path_once() -> None:
    folders = make_environment({"bash": "/usr/bin/bash"})["PATH"].split(":")
    assert len(folders) == len(set(folders))


def test_virtual_environments_are_left_alone() -> None:
    assert "PIP_USER" not in make_environment({})
