"""Compiled filters: kept once, found again, never for another filter or runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloche.engines.filters import ANNOTATION, CompiledFilter, find_filter

if TYPE_CHECKING:
    from pathlib import Path


def test_what_the_runtime_compiled_is_given_to_the_next_box(tmp_path: Path) -> None:
    state = tmp_path / "box"
    state.mkdir()
    (state / "seccomp.bpf").write_bytes(b"filter")
    compiled = CompiledFilter(tmp_path / "filters" / "name")
    compiled.keep(state)
    document: dict[str, Any] = {}
    compiled.add_to(document)
    assert document["annotations"] == {ANNOTATION: "ZmlsdGVy"}


def test_a_box_before_the_first_is_left_as_it_is(tmp_path: Path) -> None:
    compiled = CompiledFilter(tmp_path / "filters" / "name")
    compiled.keep(tmp_path)
    document: dict[str, Any] = {}
    compiled.add_to(document)
    assert document == {}


def test_another_filter_and_another_program_have_other_names(tmp_path: Path) -> None:
    names = {
        find_filter(tmp_path, program, allow).path for program in ("/bin/true", "/bin/false") for allow in (True, False)
    }
    assert len(names) == 4
