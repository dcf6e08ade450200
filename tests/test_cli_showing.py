"""What code shows, on our own output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche.cli.showing import Showing
from cloche.displays import CodeError, CodeResult, Cut, Display

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RESULT = CodeResult(
    context="python",
    language="python",
    results=(),
    stdout="",
    stderr="",
    error=CodeError(name="E", value="v", traceback="Traceback\nE: v\n"),
    execution_count=1,
    wall_seconds=0.1,
    note="a note",
    message="a message",
)


def test_text_is_output_and_what_is_about_it_is_said_apart(capfd: pytest.CaptureFixture[str]) -> None:
    showing = Showing(save=None, raw=False)
    showing.display(Display(data={"text/plain": "value", "text/html": "<b>value</b>"}))
    showing.display(Display(data={"text/html": "<b>only</b>"}, cut={"text/html": Cut(size=9, path="/tmp/\x1b")}))
    showing.end(RESULT)
    out, err = capfd.readouterr()
    assert out == "value\n"
    assert err.splitlines() == [
        "cloche: text/html was shown; --save DIR keeps it",
        "cloche: text/html has 9 octets; all of it is in the sandbox at '/tmp/\\x1b'",
        "Traceback",
        "E: v",
        "cloche: a note",
        "cloche: a message",
    ]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "shown-1.svg").write_text("mine")
    Showing(save=str(tmp_path), raw=False).display(Display(data={"image/svg+xml": "<svg/>"}))
    assert [(tmp_path / f"shown-{number}.svg").read_text() for number in (1, 2)] == ["mine", "<svg/>"]
