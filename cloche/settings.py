"""Where things are on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from cloche.errors import EngineError, InvalidRequest

_BINARIES = Path(__file__).with_name("_bin")


def home() -> Path:
    """The folder of all data: CLOCHE_HOME, else /var/lib/cloche for root, else the XDG data folder.

    Raises: InvalidRequest.
    """
    folder = _chosen_home()
    if not folder.is_dir():
        try:
            # The users of the boxes pass through it to the root file systems, and can't list it.
            folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            folder.chmod(0o711)
        except OSError as error:
            raise InvalidRequest(
                f"the folder of Cloche's data, {str(folder)!r}, can't be made: {error.strerror}; "
                "name another in CLOCHE_HOME"
            ) from error
    return folder


def _chosen_home() -> Path:
    chosen = os.environ.get("CLOCHE_HOME")
    if chosen:
        if not os.path.isabs(chosen):
            raise InvalidRequest(f"CLOCHE_HOME is {chosen!r}; an absolute path was expected")
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/cloche")
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(data) / "cloche"


def user_name() -> str:
    """Whose boxes these are; the number where this machine knows no name for it, as in many a container."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def user_home() -> str:
    """That user's own folder.

    Raises: EngineError where there is none.
    """
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        folder = os.environ.get("HOME", "")
    if not os.path.isabs(folder):
        raise EngineError(
            f"uid {os.geteuid()} has no entry in /etc/passwd, and HOME is {folder!r}: set HOME to a folder"
        )
    return folder


def keeper_path() -> Path:
    """The keeper's binary.

    Raises: EngineError.
    """
    return _binary("keeper", "CLOCHE_KEEPER")


def launch_path() -> Path:
    """The launcher's binary, which sets up what a box needs before its OCI runtime.

    Raises: EngineError.
    """
    return _binary("launch", "CLOCHE_LAUNCH")


def probe_path() -> Path:
    """The binary that tries, in a box, what the box promises.

    Raises: EngineError.
    """
    return _binary("probe", "CLOCHE_PROBE")


def _binary(name: str, variable: str) -> Path:
    path = Path(os.environ.get(variable) or _BINARIES / name)
    if not os.access(path, os.X_OK) or not path.is_file():
        raise EngineError(
            f"there is no program at {path}; build it with `make build` in a checkout or "
            f"`pip install --force-reinstall cloche` (both need gcc and libc6-dev), or name one in {variable}"
        )
    return path
