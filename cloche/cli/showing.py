"""What code in a context shows, on our own output."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloche.cli.outlet import Outlet
from cloche.cli.terminal import clean, say

if TYPE_CHECKING:
    from cloche.displays import CodeResult, Display

ENDINGS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
    "text/html": "html",
}
"""The forms that a file is made of, the best first."""
LARGE: Final = ("image/png", "image/jpeg", "application/pdf", "image/svg+xml")
"""Those that say more than their text."""


class Showing:
    """The output of one piece of code."""

    def __init__(self, *, save: str | None, raw: bool) -> None:
        self._folder = save
        self._stdout = Outlet("stdout", raw=raw)
        self._stderr = Outlet("stderr", raw=raw)

    def stdout(self, text: str) -> None:
        """What it prints."""
        self._stdout.write(text.encode("utf-8", "surrogateescape"))

    def stderr(self, text: str) -> None:
        """What it complains."""
        self._stderr.write(text.encode("utf-8", "surrogateescape"))

    def display(self, display: Display) -> None:
        """What it shows: its text, and the file that was made of it."""
        kept = self._keep(display) if self._folder is not None else None
        best = next((mime for mime in LARGE if mime in display.data), None)
        text = display.text or display.markdown or display.latex
        if best is None and text is not None:
            self.stdout(f"{text}\n")
        elif kept is None:
            hint = "" if self._folder is not None else "; --save DIR keeps it"
            say(f"{best or ', '.join(display.data)} was shown{hint}")
        if kept is not None:
            say(f"kept as {str(kept)!r}")
        for mime, cut in display.cut.items():
            where = "is lost" if cut.path is None else f"is in the sandbox at {cut.path!r}"
            say(f"{clean(mime)} has {cut.size} octets; all of it {where}")

    def end(self, result: CodeResult) -> None:
        """How it ended."""
        if result.error is not None:
            self.stderr((result.error.traceback or f"{result.error.name}: {result.error.value}").rstrip("\n") + "\n")
        self._stdout.finish()
        self._stderr.finish()
        for text in (result.note, result.message):
            if text:
                say(text)

    def _keep(self, display: Display) -> Path | None:
        for mime, ending in ENDINGS.items():
            content = _content(display, mime)
            if content is not None:
                return _write_new(Path(self._folder or "."), ending, content)
        return None


def to_json(result: CodeResult) -> dict[str, Any]:
    """All of it, for programs."""
    return {**asdict(result), "text": result.text, "ok": result.ok}


def _content(display: Display, mime: str) -> bytes | None:
    octets = {"image/png": display.png, "image/jpeg": display.jpeg, "application/pdf": display.pdf}
    if mime in octets:
        return octets[mime]
    value = display.data.get(mime)
    return value.encode("utf-8", "replace") if isinstance(value, str) else None


def _write_new(folder: Path, ending: str, content: bytes) -> Path:
    """Under the first number that is free; what is there stays."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = folder / f"shown-{number}.{ending}"
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            number += 1
        else:
            return path
