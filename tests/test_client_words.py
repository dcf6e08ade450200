"""What is run as it is, and what goes to the shell."""

from __future__ import annotations

import pytest

from cloche.client.words import to_argv
from cloche.errors import InvalidRequest


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("ls", ["ls"]),
        ("ls -la /usr/bin", ["ls", "-la", "/usr/bin"]),
        ("true", ["true"]),
        ("python3  -m   json.tool --indent=2", ["python3", "-m", "json.tool", "--indent=2"]),
        ("git@host:a+b,c%d", ["git@host:a+b,c%d"]),
    ],
)
def test_plain_words_are_run_as_they_are(command: str, argv: list[str]) -> None:
    assert [word.decode() for word in to_argv(command, "/bin/sh")] == argv


@pytest.mark.parametrize(
    "command",
    [
        "a | b", "a > b", "a; b", "a && b", "a &", "$A", "`a`", "a*", "a?", "[a]", "~", "a\\b", "a\nb", "a\tb", "'a b'", '"a"',
        "A=1 b", "A=1", "cd /", "export X", "exit 3", "echo hi", "if x", "{ a", "!x", "# x", " ls", "ls ", ". x", "ü", "a(b",
    ],
)  # fmt: skip
def test_all_else_goes_to_the_shell(command: str) -> None:
    assert to_argv(command, "/bin/sh") == (b"/bin/sh", b"-c", command.encode())


def test_a_list_is_an_argv() -> None:
    assert to_argv(["echo", "a | b", "\udcff"], "/bin/sh") == (b"echo", b"a | b", b"\xff")


@pytest.mark.parametrize("command", ["", "  ", [], [""], "a\0", ["a", "\0"], ["a", 1]])
def test_what_is_no_command_is_refused(command: str | list[str]) -> None:
    with pytest.raises(InvalidRequest):
        to_argv(command, "/bin/sh")
