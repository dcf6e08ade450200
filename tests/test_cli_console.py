"""Reading pieces of code from a person."""

from __future__ import annotations

import pytest

from cloche.cli.console import is_complete


@pytest.mark.parametrize(
    ("language", "text", "complete"),
    [
        ("python", "1 + 1", True),
        ("python", "if a:", False),
        ("python", "if a:\n    b", False),
        ("python", "if a:\n    b\n", True),
        ("python", "x = [", False),
        ("python", "x = '''", False),
        ("python", "1 +", True),  # the interpreter says what is wrong
        ("python", "await f()", True),
        ("python", "async with a as b:", False),
        ("python", "!ls | wc", True),
        ("python", "%pip install x", True),
        ("python", "%%bash", False),
        ("python", "%%bash\nls", False),
        ("python", "%%bash\nls\n", True),
        ("python", "\0", True),
        ("javascript", "1 + 1", True),
        ("javascript", "function f() {", False),
        ("javascript", "function f() {\n}", True),
        ("javascript", "'{'", True),
        ("javascript", "`a", False),
        ("javascript", "f(\n", True),  # an empty line sends it as it is
        ("bash", "echo a", True),
        ("bash", "for a in b; do", False),
        ("bash", "for a in b; do\necho $a\ndone", True),
        ("bash", "if true; then", False),
        ("bash", "echo if", True),
        ("bash", "echo a \\", False),
        ("bash", "echo 'a", False),
        ("bash", "f() {", False),
    ],
)
def test_a_piece_ends_where_nothing_more_has_to_come(language: str, text: str, complete: bool) -> None:
    assert is_complete(language, text) is complete
