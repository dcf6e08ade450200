"""What the embedded engine needs of the machine that the tests run on."""

from __future__ import annotations

from cloche.engines.machine import find_program, look_at_machine


def test_everything_that_a_box_needs_is_on_this_machine() -> None:
    assert [fact for fact in look_at_machine("crun") if not fact.ok] == []


def test_a_runtime_that_is_not_installed_is_told_with_the_command_that_installs_it() -> None:
    [fact] = [fact for fact in look_at_machine("youki") if fact.name == "youki"]
    assert (fact.ok, fact.found, fact.repair) == (False, "not installed", "apt-get install youki")


def test_system_folders_are_searched_even_where_path_leaves_them_out() -> None:
    assert find_program("mkfs.ext4") is not None
