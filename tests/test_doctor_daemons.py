"""Docker and Podman."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from cloche.doctor.daemons import DAEMONS, knock, look_at_daemons, socket_of
from cloche.doctor.daemons import judge as judge_daemon

if TYPE_CHECKING:
    from pathlib import Path

    from cloche.doctor.daemons import Door

DOCKER, PODMAN = DAEMONS


@pytest.mark.parametrize(
    ("is_installed", "door", "user", "repair"),
    [
        (False, "closed", "root", "apt-get install docker.io"),
        (True, "closed", "root", "systemctl start docker"),
        (True, "closed", "alice", "sudo systemctl start docker"),
        (True, "denied", "alice", "sudo usermod -aG docker alice, then sign out and in"),
        (True, "open", "alice", ""),
    ],
)
def test_what_is_in_the_way_of_docker_is_told(is_installed: bool, door: Door, user: str, repair: str) -> None:
    finding = judge_daemon(DOCKER, is_installed=is_installed, door=door, user=user)
    assert finding.repair.startswith(repair)
    assert finding.state == ("ok" if door == "open" else "note")


def test_who_may_use_docker_is_as_good_as_root() -> None:
    assert "root" in judge_daemon(DOCKER, is_installed=True, door="open", user="alice").found


def test_podman_of_a_user_is_started_by_that_user() -> None:
    finding = judge_daemon(PODMAN, is_installed=True, door="closed", user="alice")
    assert finding.repair == "systemctl --user enable --now podman.socket"


def knock_as_nobody(path: Path) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setuid(65534)
        os.write(writer, knock(str(path)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with open(reader) as answer:
        return answer.read()


def test_a_door_is_open_closed_or_denied(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    path = tmp_path / "s"
    assert knock(str(path)) == "closed"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert knock(str(path)) == "closed"
        server.listen()
        assert knock(str(path)) == "open"
        path.chmod(0o600)
        assert knock_as_nobody(path) == "denied"


def test_the_socket_is_where_docker_is_told_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///somewhere/docker.sock")
    assert socket_of("docker") == "/somewhere/docker.sock"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert socket_of("podman") == "/run/user/1000/podman/podman.sock"


def test_each_is_told_of_whether_it_is_here_or_not() -> None:
    assert [finding.name for finding in look_at_daemons()] == ["docker", "podman"]
