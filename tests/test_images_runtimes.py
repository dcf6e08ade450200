from __future__ import annotations

from pathlib import Path

import pytest

from cloche.errors import RuntimeNotFound
from cloche.images.base import Image
from cloche.images.runtimes import preference, resolve


def image_with(*runtimes: str, name: str = "host") -> Image:
    return Image(name=name, rootfs=Path("/x"), interpreters={runtime: f"/opt/{runtime}/bin/x" for runtime in runtimes})


FULL = image_with(
    "python3.10", "python3.11", "python3.12", "python3.13", "python2.7", "node18", "node20", "node22", "bash"
)


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (None, "python3.12"),
        ("python", "python3.12"),
        ("python3", "python3.12"),
        ("python2", "python2.7"),
        ("python3.10", "python3.10"),
        ("python 3.10", "python3.10"),
        ("python@3.10", "python3.10"),
        ("python:3.10", "python3.10"),
        (" Python 3.11 ", "python3.11"),
        ("py3.13", "python3.13"),
        ("node", "node20"),
        ("node22", "node22"),
        ("node v22", "node22"),
        ("Node.js", None),
        ("nodejs@18", "node18"),
        ("js", "node20"),
        ("bash", "bash"),
        ("sh", "bash"),
        ("shell", "bash"),
    ],
)
def test_a_name_means_one_runtime(asked: str | None, chosen: str | None) -> None:
    if chosen is None:
        with pytest.raises(RuntimeNotFound):
            resolve(asked, FULL)
    else:
        found = resolve(asked, FULL)
        assert (found.name, found.note) == (chosen, "")


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        (["python3.11", "python3.13", "python3.14"], "python3.13"),
        (["python3.9", "python3.11"], "python3.11"),
        (["python2.7", "python3.6"], "python3.6"),
        (["python3.100", "python3.20"], "python3.20"),
    ],
)
def test_without_the_default_the_nearest_newer_one_is_taken_else_the_newest(there: list[str], chosen: str) -> None:
    found = resolve("python", image_with(*there))
    assert found.name == chosen
    assert "python 3.12 is the default and is not in image 'host'" in found.note


def test_a_version_that_was_named_and_is_there_needs_no_note() -> None:
    assert resolve("python3.11", image_with("python3.11")).note == ""


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("python3.9", "cloche runtimes add python 3.9, or pyenv install 3.9"),
        ("python 3.9.2", "cloche runtimes add python 3.9, or pyenv install 3.9"),
        ("python4", "cloche runtimes add python 4, or pyenv install 4"),
        ("python3.6", "To get it: pyenv install 3.6"),
        ("node16", "cloche runtimes add node 16, or nvm install 16"),
    ],
)
def test_a_version_that_is_not_there_is_refused_with_what_is_and_how_to_get_it(asked: str, how: str) -> None:
    with pytest.raises(RuntimeNotFound, match=r"it has python3\.10, .*") as refusal:
        resolve(asked, FULL)
    assert refusal.value.message.endswith(how)


@pytest.mark.parametrize(("asked", "short"), [("python 3.12.1", "python3.12"), ("node20.1", "node20")])
def test_a_version_with_more_numbers_than_a_runtime_has_is_told_the_name(asked: str, short: str) -> None:
    with pytest.raises(RuntimeNotFound, match=f"named without its last numbers: '{short}'"):
        resolve(asked, FULL)


def test_an_imported_image_is_not_told_to_install_on_this_machine() -> None:
    with pytest.raises(RuntimeNotFound, match="use an image that has it: cloche images add"):
        resolve("node", image_with("python3.12", name="mine"))


@pytest.mark.parametrize(
    "asked", ["", "ruby", "python3.x", "python-", "3.12", "python3..1", "python\n;", "9" * 5000, "п"]
)
def test_a_name_that_means_nothing_is_refused_with_what_there_is(asked: str) -> None:
    with pytest.raises(RuntimeNotFound):
        resolve(asked, image_with("bash"))


def test_an_image_without_interpreters_says_so() -> None:
    with pytest.raises(RuntimeNotFound, match="no interpreter that we know"):
        resolve("python", image_with())


def test_a_node_of_unknown_version_serves_where_none_is_named() -> None:
    assert resolve("node", image_with("node")).version == ""
    with pytest.raises(RuntimeNotFound):
        resolve("node20", image_with("node"))


def test_the_folder_of_the_interpreter_goes_first_in_the_path_but_not_that_of_bash() -> None:
    assert resolve("node22", FULL).path_prefix == "/opt/node22/bin"
    assert resolve("bash", FULL).path_prefix == ""


def test_the_order_of_preference_is_default_newer_older() -> None:
    names = ["bash", "node18", "python3.13", "python3.9", "ruby3.1", "python3.12", "node20", "python3.11", "python3.14"]
    assert sorted(names, key=preference) == [
        *("python3.12", "python3.13", "python3.14", "python3.11", "python3.9"),
        *("node20", "node18", "bash", "ruby3.1"),
    ]


@pytest.mark.parametrize(
    ("there", "chosen"), [(("bash", "node22", "node20"), "node20"), (("bash",), "bash"), ((), "sh")]
)
def test_an_image_without_python_makes_a_box_all_the_same(there: tuple[str, ...], chosen: str) -> None:
    found = resolve(None, image_with(*there, name="other"))
    assert (found.name, found.note) == (chosen, "image 'other' has no python")
    with pytest.raises(RuntimeNotFound, match="there is no python in image 'other'"):
        resolve("python", image_with(*there, name="other"))
