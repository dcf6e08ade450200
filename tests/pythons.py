"""The Python driver in the interpreters of this machine, and the packages whose values it shows."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cloche.drivers import LANGUAGES, first_octets
from tests.driver import Driver

CACHE = Path(__file__).parents[1] / ".cache"
PACKAGES = (
    "altair==6.3.0",
    "e2b-charts==1.0.0",
    "ipython==9.18.1",
    "matplotlib==3.11.2",
    "pandas==3.1.1",
    "pillow==13.0.0",
    "plotly==7.1.0",
)


def find_interpreters() -> dict[str, str]:
    """This one, and one of each other version from 3.8 on that pyenv has; version to path."""
    found = {sys.version_info[:2]: sys.executable}
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")):
        minor = path.parents[1].name.split(".")[1]
        if minor.isdecimal() and int(minor) >= 8:
            found.setdefault((3, int(minor)), str(path))
    return {f"{major}.{minor}": path for (major, minor), path in sorted(found.items())}


INTERPRETERS = find_interpreters()


def start(interpreter: str, cwd: Path, *options: str, **env: str) -> Driver:
    language = LANGUAGES["python"]
    argv = [interpreter, *options, *language.argv]
    return Driver(argv, first_octets(language), env={"PATH": os.environ["PATH"], **env}, cwd=str(cwd))


def wait_until_asleep(driver: Driver) -> None:
    """A signal that comes just before Python falls asleep does not wake it."""
    deadline = time.monotonic() + 20
    while Path(f"/proc/{driver.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < deadline


def install_packages() -> Path:
    """A folder with all of them, for this interpreter; it is made once and kept."""
    key = hashlib.sha256("\n".join((sys.version, *PACKAGES)).encode()).hexdigest()[:12]
    folder = CACHE / f"packages-{key}"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        fresh = tempfile.mkdtemp(dir=CACHE)
        if shutil.which("uv"):
            command = ["uv", "pip", "install", "--quiet", "--python", sys.executable]
        else:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--only-binary", ":all:", "--target", fresh, *PACKAGES], check=True)
        os.replace(fresh, folder)
    return folder
