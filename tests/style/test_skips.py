"""A skipped test counts as failed, however it was skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

# In pieces, as the tree is searched for the words.
SKIP = "pytest." + "skip"
WAYS = {
    "in the test": f"import pytest\ndef test_a(): {SKIP}('no')\n",
    "by a mark": f"import pytest\n@pytest.mark.{'skip'}\ndef test_a(): ...\n",
    "of the whole file": f"import pytest\n{SKIP}('no', allow_module_level=True)\n",
    "for want of a module": f"import pytest\npytest.{'importor' + 'skip'}('no_such_module')\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_skipped_test_fails(way: str, tmp_path: Path) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_one.py").write_text(WAYS[way])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode in (1, 2), done.stdout
    assert "a skipped test proves nothing" in done.stdout
