"""Languages by name, and requests for their drivers."""

from __future__ import annotations

import json

import pytest

from cloche.client.languages import Choice, choose_language, default_id, make_request, make_start
from cloche.drivers import LANGUAGES
from cloche.errors import InvalidRequest


@pytest.mark.parametrize(
    ("word", "choice"),
    [
        (None, Choice("javascript", "node20")),
        ("python", Choice("python", "python")),
        ("Python 3.10", Choice("python", "python3.10")),
        ("python3", Choice("python", "python")),
        ("py", Choice("python", "python")),
        ("js", Choice("javascript", "node20")),
        ("node@22", Choice("javascript", "node22")),
        ("typescript", Choice("javascript", "node20", "typescript")),
        ("ts", Choice("javascript", "node20", "typescript")),
        ("bash", Choice("bash", "bash")),
        ("sh", Choice("bash", "bash")),
    ],
)
def test_a_language_is_found_by_what_people_call_it(word: str | None, choice: Choice) -> None:
    assert choose_language(word, "node20") == choice


@pytest.mark.parametrize(
    ("word", "own", "id"),
    [
        (None, "python3.12", "python"),
        (None, "node20", "javascript"),
        ("js", "python3.12", "javascript"),
        ("python3.12", "python3.12", "python"),
        ("python3.10", "python3.12", "python3.10"),
        ("node@22", "python3.12", "node22"),
    ],
)
def test_a_language_has_a_context_of_its_name(word: str | None, own: str, id: str) -> None:
    assert default_id(choose_language(word, own), own) == id


@pytest.mark.parametrize("word", ["", "cobol", "python;ls", "../python", "r"])
def test_an_unknown_language_is_told_with_those_that_are_known(word: str) -> None:
    with pytest.raises(InvalidRequest, match="expected one of: python, javascript, bash, typescript"):
        choose_language(word, "python")


def test_a_request_is_a_line_of_json() -> None:
    said = make_request("python", 7, "print('é')\n", cwd="/x", env={"A": "1"}, dialect=None)
    assert said.count(b"\n") == 1
    assert json.loads(said) == {"id": 7, "code": "print('é')\n", "cwd": "/x", "env": {"A": "1"}}
    assert json.loads(make_request("javascript", 1, "1", cwd=None, env={}, dialect="typescript")) == {
        "id": 1,
        "code": "1",
        "language": "typescript",
    }


def test_for_bash_a_request_is_fields() -> None:
    said = make_request("bash", 7, "echo é", cwd=None, env={"A": "1\n2"}, dialect=None)
    assert said == "7 3\n7\necho é\n0\n\n5\nA=1\n2\n".encode()
    with pytest.raises(InvalidRequest, match="no character"):
        make_request("bash", 7, "echo \ud800", cwd=None, env={}, dialect=None)
    with pytest.raises(InvalidRequest, match="NUL"):
        make_request("bash", 7, "echo \0", cwd=None, env={}, dialect=None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_driver_comes_with_its_length(language: str) -> None:
    argv, first = make_start(language)
    lengths, _, source = first.partition(b"\n")
    assert argv
    assert sum(map(int, lengths.split())) == len(source)
