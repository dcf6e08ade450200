"""What code shows."""

from __future__ import annotations

import base64

import pytest

from cloche.displays import CHART, TABLE, CodeError, CodeResult, Display
from cloche.errors import CodeFailed, CommandTimeout


def result(**fields: object) -> CodeResult:
    plain = {"context": "python", "language": "python", "results": (), "stdout": "", "stderr": "", "error": None}
    return CodeResult(**{**plain, "execution_count": 1, "wall_seconds": 0.1, **fields})  # pyright: ignore[reportArgumentType]


def test_every_form_has_a_name() -> None:
    words = {
        "text": "text/plain",
        "html": "text/html",
        "markdown": "text/markdown",
        "latex": "text/latex",
        "svg": "image/svg+xml",
        "javascript": "application/javascript",
    }
    octets = {"png": "image/png", "jpeg": "image/jpeg", "pdf": "application/pdf"}
    values = {"json": "application/json", "chart": CHART, "table": TABLE}
    data: dict[str, object] = {mime: mime for mime in words.values()}
    data |= {mime: base64.b64encode(mime.encode()).decode() for mime in octets.values()}
    data |= {mime: {"is": mime} for mime in values.values()}
    shown = Display(data=data)
    assert {name: getattr(shown, name) for name in words} == words
    assert {name: getattr(shown, name) for name in octets} == {name: mime.encode() for name, mime in octets.items()}
    assert {name: getattr(shown, name) for name in values} == {name: {"is": mime} for name, mime in values.items()}
    assert {getattr(Display(data={}), name) for name in (*words, *octets, *values)} == {None}


def test_a_picture_that_is_none_is_none() -> None:
    assert Display(data={"image/png": "no base64!"}).png is None


def test_the_text_is_that_of_the_last_expression() -> None:
    shown = (Display(data={"text/plain": "1"}), Display(data={"text/plain": "2"}, main=True))
    assert result(results=shown).text == "2"
    assert result().text is None


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"error": CodeError(name="E", value="v", traceback="")}, CodeFailed, "E: v"),
        ({"exit_code": 3}, CodeFailed, "exit code 3"),
        ({"limit_hit": "timeout", "message": "out of time"}, CommandTimeout, "out of time"),
    ],
)
def test_a_failure_is_raised_where_that_is_wanted(
    fields: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        result(**fields).check()


def test_what_went_well_is_itself() -> None:
    fine = result(exit_code=0)
    assert fine.check() is fine
    assert fine.ok
