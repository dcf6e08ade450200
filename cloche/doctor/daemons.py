"""Docker and Podman: whether they are here, and whether who asks may use them."""

from __future__ import annotations

import os
import socket
from typing import Final, Literal, NamedTuple

from cloche import settings
from cloche.doctor.findings import Finding
from cloche.engines.machine import find_program

Door = Literal["open", "denied", "closed"]
SECONDS: Final = 2.0


class Daemon(NamedTuple):
    """A program that makes containers behind a socket."""

    name: str
    install: str
    start: str
    """For root; an ordinary user's own in `start_own`."""
    start_own: str
    join: str


DAEMONS: Final = (
    Daemon(
        "docker",
        "apt-get install docker.io",
        "systemctl start docker",
        "sudo systemctl start docker",
        "sudo usermod -aG docker {user}, then sign out and in; who is in that group is as good as root",
    ),
    Daemon(
        "podman",
        "apt-get install podman",
        "systemctl enable --now podman.socket",
        "systemctl --user enable --now podman.socket",
        "ask whoever runs it; as a user of your own: systemctl --user enable --now podman.socket",
    ),
)


def look_at_daemons() -> list[Finding]:
    """Both of them. The engines of this version need neither."""
    user = settings.user_name()
    return [
        judge(daemon, is_installed=find_program(daemon.name) is not None, door=knock(socket_of(daemon.name)), user=user)
        for daemon in DAEMONS
    ]


def judge(daemon: Daemon, *, is_installed: bool, door: Door, user: str) -> Finding:
    """What is in the way of using it."""
    title = daemon.name.capitalize()
    if door == "open":
        own = "" if user == "root" or daemon.name == "podman" else "; who may use it is as good as root"
        return Finding(daemon.name, "ok", f"{title} answers{own}")
    if not is_installed:
        return Finding(
            daemon.name, "note", f"{title} is not installed; the engines that are here do without", daemon.install
        )
    if door == "denied":
        return Finding(daemon.name, "note", f"{user} may not use the socket of {title}", daemon.join.format(user=user))
    start = daemon.start if user == "root" else daemon.start_own
    return Finding(daemon.name, "note", f"the socket of {title} does not answer", start)


def socket_of(name: str) -> str:
    """Where that daemon listens for this process."""
    if name == "docker":
        host = os.environ.get("DOCKER_HOST", "")
        return host.removeprefix("unix://") if host.startswith("unix://") else "/var/run/docker.sock"
    if os.geteuid() == 0:
        return "/run/podman/podman.sock"
    return os.path.join(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}", "podman/podman.sock")


def knock(path: str) -> Door:
    """Connects, and asks for nothing."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS)
        try:
            client.connect(path)
        except PermissionError:
            return "denied"
        except OSError:
            return "closed"
    return "open"
