"""What comes out of a sandbox, made fit for a person's terminal."""

from __future__ import annotations

import unicodedata

REPLACEMENT = "�"
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories with control characters, direction marks and what has no width."""


def clean(text: str) -> str:
    """For a line of our own: nothing in it can move the cursor, change a colour or turn the line around."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(REPLACEMENT if unicodedata.category(char) in _UNSAFE else char for char in text)
