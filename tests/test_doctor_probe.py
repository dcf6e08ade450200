"""The probe, in a box and by what it says."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from cloche import settings
from cloche.doctor.probe import Probe, parse_answers, parse_status
from cloche.errors import EngineError, SandboxError

if TYPE_CHECKING:
    from cloche import Sandbox


def test_answers_and_a_status_are_read_by_name() -> None:
    assert parse_answers("/proc/self/ns/pid: pid:[12]\nmount: EPERM\nnonsense\n") == {
        "/proc/self/ns/pid": "pid:[12]",
        "mount": "EPERM",
    }
    assert parse_status("Uid:\t0\t0\t0\t0\nSeccomp:\t2\n") == {"Uid": "0\t0\t0\t0", "Seccomp": "2"}


def test_it_tries_from_inside(box: Sandbox) -> None:
    probe = Probe(box)
    assert probe.ask("make", "/tmp/new", "/usr/new") == {"/tmp/new": "done", "/usr/new": "EROFS"}
    assert probe.ask("look", "/tmp/new", "/tmp", "/tmp/none") == {
        "/tmp/new": "empty",
        "/tmp": "full",
        "/tmp/none": "ENOENT",
    }
    assert probe.show("/etc/hostname") == box.files.read("/etc/hostname")
    assert probe.run("disk", "2", "/tmp").stdout == "2\n"


def test_a_try_that_says_nothing_is_an_error_and_not_an_answer(box: Sandbox) -> None:
    with pytest.raises(SandboxError, match="'nonsense' ended with exit code 2"):
        Probe(box).ask("nonsense", "word")


def test_a_missing_probe_is_told_with_its_repair(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOCHE_PROBE", "/nowhere/probe")
    with pytest.raises(EngineError, match="make build"):
        Probe(box)


def test_without_a_filter_nearly_all_its_calls_reach_the_kernel_and_do_no_harm() -> None:
    """Else a refusal would say nothing of the filter."""
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    done = subprocess.run([*command, settings.probe_path(), "calls"], capture_output=True, text=True, check=True)
    answers = parse_answers(done.stdout)
    refused = {name for name, answer in answers.items() if answer in ("EPERM", "ENOSYS")}
    assert len(answers) >= 27
    # What a kernel may be set or built not to have.
    assert refused <= {"calls of x32", "calls of 32 bits", "io_uring_setup", "unshare user", "clone user"}


@pytest.mark.parametrize(("what", "most"), [("memory", "3"), ("processes", "3"), ("files", "3"), ("disk", "3")])
def test_what_it_takes_has_an_end_where_no_limit_holds(what: str, most: str, box: Sandbox) -> None:
    result = Probe(box).run(what, most, "/tmp")
    assert (result.exit_code, result.stdout) == (0, "3\n")
