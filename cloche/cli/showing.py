"""What code in a context shows, on our own output."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloche.cli.outlet import Outlet
from cloche.cli.terminal import clean, say
from cloche.errors import InvalidRequest

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
MOST_FILES: Final = 10_000
LARGE: Final = ("image/png", "image/jpeg", "application/pdf", "image/svg+xml")
"""Those that say more than their text."""


class Showing:
    """The output of one piece of code."""

    def __init__(self, *, save: str | None, raw: bool) -> None:
        self._folder = save
        self._number = 0
        self._stdout = Outlet("stdout", raw=raw)
        self._stderr = Outlet("stderr", raw=raw)

    def stdout(self, text: str) -> None:
        """What it prints."""
        self._stdout.write(text.encode("utf-8", "backslashreplace"))

    def stderr(self, text: str) -> None:
        """What it complains."""
        self._stderr.write(text.encode("utf-8", "backslashreplace"))

    def display(self, display: Display) -> None:
        """What it shows: its text, and the file that was made of it."""
        kept = self._keep(display) if self._folder is not None else None
        best = next((mime for mime in LARGE if mime in display.data), None)
        text = display.text or display.markdown or display.latex
        if best is None and text is not None:
            self.stdout(f"{text}\n")
        elif kept is None and display.data:
            hint = "" if self._folder is not None else "; --save DIR keeps it"
            say(f"{best or clean(', '.join(display.data))} was shown{hint}")
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
                return self._write_new(Path(self._folder or "."), ending, content)
        return None

    def _write_new(self, folder: Path, ending: str, content: bytes) -> Path:
        """Under the next number that is free; what is there stays."""
        folder.mkdir(parents=True, exist_ok=True)
        while self._number < MOST_FILES:
            self._number += 1
            path = folder / f"shown-{self._number}.{ending}"
            with suppress(FileExistsError), path.open("xb") as file:
                file.write(content)
                return path
        raise InvalidRequest(f"{str(folder)!r} has {MOST_FILES} files of what was shown; name another folder")


def to_json(result: CodeResult) -> dict[str, Any]:
    """All of it, for programs."""
    # Not with asdict, which would copy all that was shown.
    fields = {name: getattr(result, name) for name in result.__slots__}
    shown = [
        {"data": it.data, "main": it.main, "cut": {mime: asdict(cut) for mime, cut in it.cut.items()}}
        for it in result.results
    ]
    error = None if result.error is None else asdict(result.error)
    return {**fields, "results": shown, "error": error, "text": result.text, "ok": result.ok}


def _content(display: Display, mime: str) -> bytes | None:
    octets = {"image/png": display.png, "image/jpeg": display.jpeg, "application/pdf": display.pdf}
    if mime in octets:
        return octets[mime]
    value = display.data.get(mime)
    return value.encode("utf-8", "replace") if isinstance(value, str) else None
