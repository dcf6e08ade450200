"""The environment that every image gives to what runs in it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = "/home/user"
LOCAL = f"{HOME}/.local"
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")

SETTINGS = {
    "LANG": "C.UTF-8",
    # What one execution installs, the next one finds: as user and as root, outside of virtual environments.
    "PYTHONUSERBASE": LOCAL,
    "NPM_CONFIG_PREFIX": LOCAL,
    "NODE_PATH": f"{LOCAL}/lib/node_modules",
    # The box is there to be changed: no refusal in the distribution's name, no advice on upgrades.
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
}


def make_environment(interpreters: Mapping[str, str]) -> dict[str, str]:
    """SETTINGS and a PATH in which each language's best interpreter comes before the system's own."""
    best: dict[str, str] = {}
    for runtime, path in interpreters.items():
        best.setdefault(runtime.rstrip("0123456789."), posixpath.dirname(path))
    folders = [folder for folder in best.values() if folder not in SYSTEM_PATH]
    return {"PATH": ":".join([f"{LOCAL}/bin", *folders, *SYSTEM_PATH]), **SETTINGS}
