"""What was asked for, complete and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloche.errors import InvalidRequest
from cloche.sandboxes.specs import check_environment, make_spec, parse_workspace

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_asked_for_by_name_is_remembered(home: Path) -> None:
    del home
    spec = make_spec(limits={"pids": 9})
    assert spec.explicit == {"pids"}
    assert (spec.engine, spec.image, spec.user, spec.workspace_access) == ("embedded", "host", "user", "none")


def test_a_workspace_is_read_only_unless_it_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    real = str(tmp_path.resolve())
    assert parse_workspace(None) == (None, "none")
    assert parse_workspace(tmp_path) == (real, "ro")
    assert parse_workspace(f"{tmp_path}:ro") == (real, "ro")
    assert parse_workspace(f"{tmp_path}:rw") == (real, "rw")


def test_a_workspace_that_leads_through_a_link_is_refused_with_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(InvalidRequest, match="leads through a link to"):
        parse_workspace(f"{tmp_path}/link:rw")


def test_neither_the_data_of_cloche_nor_what_holds_it_can_be_a_workspace(home: Path) -> None:
    (home / "boxes").mkdir()
    for folder in (str(home.parent), str(home), str(home / "boxes")):
        with pytest.raises(InvalidRequest, match="Cloche's own data"):
            parse_workspace(folder)


@pytest.mark.parametrize("text", ["", "relative", "/no/such", "/", "//", "/..:rw", "/etc/passwd"])
def test_a_workspace_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="workspace"):
        parse_workspace(text)


def test_an_environment_that_no_process_can_have_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="at most"):
        check_environment({"A": "x" * (1 << 20)})
    with pytest.raises(InvalidRequest, match="strings"):
        check_environment({"A": 1})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["", "-a", "/a", "a:b", "a\n", "x" * 65, "0123456789abcdefghij"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(home: Path, name: str) -> None:
    del home
    with pytest.raises(InvalidRequest, match="name is"):
        make_spec(limits={}, name=name)


@pytest.mark.parametrize("name", ["a", "tests 2", "m\u00fcller@x.de", "v1.2+b/c", "0123456789abcdefghijk"])
def test_names_are_for_people(home: Path, name: str) -> None:
    del home
    assert make_spec(limits={}, name=name).name == name
