"""What comes out of a sandbox, made fit for a person's terminal."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Final

REPLACEMENT: Final = "�"
BELL: Final = "⌓"
"""What our own messages on a terminal begin with, and no output of a sandbox can show there."""

_UNSAFE: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories with control characters, direction marks and what has no width."""
_HARMLESS: Final = re.compile(r"[\n\t\x20-\x7e]*")
_SEQUENCE: Final = (
    r"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    # A title, a link, the clipboard, a picture: to its end, or to where no terminal would go on.
    r"|\x1b[]PX^_][^\x07\x18\x1a\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\|(?=[\x18\x1a\x1b\n]))"
    r"|\x1b(?P<short>[ -/]*[0-OQ-WYZ`-~\\])"
)
_HIDDEN: Final = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    rf"\ud800-\udfff\U000e0000-\U000e007f{BELL}]"
)
_FOREIGN: Final = re.compile(rf"{_SEQUENCE}|\r\n?|{_HIDDEN}")
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[]PX^_][^\x07\x18\x1a\x1b\x9c\n]*\x1b?|[ -/]*)?\Z|\r\Z")
_LONGEST: Final = 4096
"""Characters of a sequence whose end has not come."""

_COLOUR: Final = re.compile(r"[\d;:]*m")
_MODE: Final = r"(?:1|7|12|25|47|1000|1002|1003|1004|1005|1006|1015|1047|1048|1049|2004|2026)"
_SCREEN: Final = re.compile(
    rf"[\d;:]*[@-MPSTXZ`adefmrsu]|\d{{0,4}}b|[0-6]? q|[\d;]*[hl]|\?{_MODE}(?:;{_MODE})*[hl]|\?[\d;]*[JK]"
)
_SCREEN_SHORT: Final = re.compile(r"[()][0AB]|[78=>DEM]")
_SCREEN_CONTROLS: Final = "\x07\x08\x0e\x0f\r"
RESTORED: Final = "\x1b[?1000;1002;1003;1004;1005;1006;1015;2004;2026;1l\x1b[?7;25h\x1b[4l\x1b>\x1b(B\x0f\x1b[0m\x1b7\x1b[r\x1b8\x1b[?1049l"
"""The terminal as a program should have left it."""


def clean(text: str) -> str:
    """For a line of our own: nothing in it can move the cursor, change a colour or turn the line around."""
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    return "".join(REPLACEMENT if unicodedata.category(char) in _UNSAFE else char for char in text)


def say(message: str) -> None:
    """A message of our own, on standard error: each line clean, and with a beginning that no output can have."""
    prefix = f"{BELL} cloche: " if sys.stderr.isatty() else "cloche: "
    print("\n".join(f"{prefix}{clean(line)}" for line in message.splitlines()), file=sys.stderr, flush=True)


class TerminalFilter:
    """Octets in, text for a terminal out: lines and colours, and nothing else that a terminal obeys.

    With `screen` also what a program with the whole screen needs (moving, erasing, scrolling); never what the
    terminal would answer to, what leaves it (title, clipboard, links), or what it would print or load.
    """

    def __init__(self, *, screen: bool = False) -> None:
        self._screen = screen
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._has_colour = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """What of it may be shown now; half a sequence waits for its other half."""
        text = self._pending + self._decoder.decode(data, final)
        self._pending = ""
        if _HARMLESS.fullmatch(text):
            return text
        unfinished = None if final else _UNFINISHED.search(text)
        if unfinished and len(text) - unfinished.start() <= _LONGEST:
            text, self._pending = text[: unfinished.start()], unfinished[0]
        return _FOREIGN.sub(self._judge, text)

    def finish(self) -> str:
        """What was waiting, and the terminal's own colours again."""
        text = self.feed(b"", final=True)
        if self._screen:
            return text + RESTORED
        return f"{text}\x1b[0m" if self._has_colour else text

    def _judge(self, match: re.Match[str]) -> str:
        found = match[0]
        if match["csi"] is not None:
            if _COLOUR.fullmatch(match["csi"]):
                self._has_colour = True
                return found
            return found if self._screen and _SCREEN.fullmatch(match["csi"]) else ""
        if match["short"] is not None:
            return found if self._screen and _SCREEN_SHORT.fullmatch(match["short"]) else ""
        if self._screen and (found in _SCREEN_CONTROLS or found == "\r\n"):
            return found
        if found[0] == "\r":
            return "\n"
        # A whole string sequence goes without a trace; a lone character is shown as one that is not.
        return "" if len(found) > 1 else REPLACEMENT
