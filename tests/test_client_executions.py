"""From options to a RUN frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloche.client.executions import Preparation, input_frames
from cloche.engines.base import Box
from cloche.errors import InvalidRequest
from cloche.link import frames
from cloche.models import SandboxSpec
from cloche.sandboxes.records import Record, RuntimeChoice


def preparation(user: str = "user", cwd: str | None = None) -> Preparation:
    box = Box(id="a" * 20, engine="embedded:crun", folder=Path("/b"), socket=Path("/b/s"), state={})
    return Preparation(
        Record(
            box=box,
            spec=SandboxSpec(user=user),  # pyright: ignore[reportArgumentType]
            runtime=RuntimeChoice(name="python3.12", version="3.12", path="/usr/bin/python3.12"),
            env={"PATH": "/usr/bin", "A": "1"},
            shell="/bin/bash",
            cwd=cwd,
            host_home=None,
            created=0.0,
        )
    )


def test_the_defaults_are_the_sandboxs() -> None:
    request = preparation().execution(["true"]).request
    assert (request.uid, request.gid, request.cwd) == (1000, 1000, b"/home/user")
    assert (request.time_limit_ms, request.output_limit) == (30_000, 1 << 20)
    assert request.env == (b"HOME=/home/user", b"USER=user", b"LOGNAME=user", b"PATH=/usr/bin", b"A=1")


def test_the_call_wins() -> None:
    request = preparation().execution("echo hi", env={"A": "2"}, cwd="sub", timeout=0.0001 + 1, output_bytes=0).request
    assert request.argv == (b"/bin/bash", b"-c", b"echo hi")
    assert request.cwd == b"/home/user/sub"
    assert (request.time_limit_ms, request.output_limit) == (1000, 0)
    assert b"A=2" in request.env


def test_work_starts_in_the_workspace_where_there_is_one() -> None:
    assert preparation(cwd="/workspace").execution(["true"]).request.cwd == b"/workspace"


def test_the_user_can_only_become_less() -> None:
    assert preparation("root").execution(["true"], user="user").request.uid == 1000
    assert preparation("root").execution(["true"]).request.uid == 0
    with pytest.raises(InvalidRequest, match="make one for 'root'"):
        preparation().execution(["true"], user="root")


@pytest.mark.parametrize(
    "options", [{"timeout": -1}, {"output_bytes": 1}, {"env": {"": "x"}}, {"cwd": ""}, {"user": "bob"}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        preparation().execution(["true"], **options)  # pyright: ignore[reportArgumentType]


def test_input_is_cut_into_frames_and_ended() -> None:
    found = list(input_frames("ü" * 200_000))
    assert sum(len(frame.data) for frame in found if isinstance(frame, frames.Stdin)) == 400_000
    assert found[-1] == frames.StdinEnd()
