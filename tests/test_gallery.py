"""The gallery shows what comes back: CLOCHE_GALLERY=write puts the pictures there that are compared else."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import Sandbox
from tests.conftest import remove_home

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "gallery.md"
BLOCK = re.compile(r"^```python gallery\n(.*?)^```$(?:\s*^!\[[^]]*\]\(([^)]*)\)$)?", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
# Fonts and their edges may differ a little from one machine to the next.
COMPARE = """
import numpy as np
from PIL import Image
one, two = (np.asarray(Image.open(name).convert("RGB"), dtype=float) for name in ("/tmp/found.png", "/tmp/wanted.png"))
bool(one.shape == two.shape and one.std() > 10 and abs(one - two).mean() < 3)
"""


@pytest.fixture(scope="module")
def box(packages: Path) -> Iterator[Sandbox]:
    """One that sees the packages."""
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    home = Path(tempfile.mkdtemp(prefix="cl-"))
    home.chmod(0o711)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOCHE_HOME", str(home))
        env = {"PYTHONPATH": "/workspace"}
        with Sandbox.create(runtime, workspace=packages, env=env, memory_mb=1024) as box:
            yield box
    remove_home(home)


@pytest.mark.parametrize(("code", "picture"), BLOCKS)
def test_a_piece_of_the_gallery_shows_what_the_page_shows(box: Sandbox, code: str, picture: str) -> None:
    result = box.run_code(code, timeout=110).check()
    (shown,) = result.results
    if not picture:
        assert shown.table == {"plant": ["basil", "dill"], "days": [7, 12]}
        assert "<table" in (shown.html or "")
        return
    assert shown.png
    path = PAGE.parent / picture
    if os.environ.get("CLOCHE_GALLERY") == "write":
        path.write_bytes(shown.png)
    box.files.write("/tmp/found.png", shown.png)
    box.files.write("/tmp/wanted.png", path.read_bytes())
    assert box.run_code(COMPARE).text == "True"


def test_the_first_one_has_its_data(box: Sandbox) -> None:
    chart = box.run_code(BLOCKS[0][0], timeout=110).check().results[0].chart
    assert chart
    assert (chart["type"], chart["title"], chart["y_label"]) == ("bar", "Seedlings", "pots")
    assert [(bar["label"], bar["value"]) for bar in chart["elements"]] == [
        ("Jan", 12),
        ("Feb", 19),
        ("Mar", 7),
        ("Apr", 15),
    ]


def test_every_picture_is_shown() -> None:
    shown = {picture for _, picture in BLOCKS if picture}
    assert shown == {f"gallery/{path.name}" for path in (PAGE.parent / "gallery").iterdir()}
