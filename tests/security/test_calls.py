"""Which system calls reach the kernel, by whichever door (promise 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.security.lab import attack, compile_attack, run_python

if TYPE_CHECKING:
    from cloche import Sandbox

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16


@pytest.mark.promise("syscalls")
def test_what_must_not_be_called_is_refused(any_box: Sandbox) -> None:
    lines = attack(any_box, "syscalls").check().stdout.splitlines()
    answers = dict(line.rsplit(": ", 1) for line in lines)
    assert len(answers) > 70
    assert {name: answer for name, answer in answers.items() if answer not in ("EPERM", "ENOSYS")} == {}


def test_clone3_is_not_there_so_that_libraries_fall_back(any_box: Sandbox) -> None:
    assert "clone3: ENOSYS" in attack(any_box, "syscalls").stdout.splitlines()


@pytest.mark.promise("syscalls")
def test_sockets_are_of_the_few_families_that_programs_need(any_box: Sandbox) -> None:
    lines = attack(any_box, "sockets").check().stdout.splitlines()
    made = {tuple(map(int, line.split())) for line in lines}
    assert {family for family, _, _ in made} <= {UNIX, INET, INET6, NETLINK}
    assert {protocol for family, _, protocol in made if family in (INET, INET6)} <= {0, 6, 17}
    assert {protocol for family, _, protocol in made if family == NETLINK} == {0}


@pytest.mark.promise("syscalls")
@pytest.mark.parametrize("gate", ["int80", "x32"])
def test_the_other_doors_of_x86_are_closed(any_box: Sandbox, gate: str) -> None:
    result = attack(any_box, "gates", gate)
    assert "done" not in result.stdout
    assert result.signal == 31 or set(result.stdout.split()) == {"refused"}


@pytest.mark.promise("syscalls")
def test_nobody_types_into_a_terminal(any_box: Sandbox) -> None:
    any_box.files.write("/tmp/terminal", compile_attack("terminal"), mode=0o755)
    lines = any_box.commands.run(["script", "-qc", "/tmp/terminal", "/dev/null"]).stdout.split("\n")
    assert {line.strip().rpartition(": ")[2] for line in lines if line.strip()} == {"EPERM"}


@pytest.mark.promise("syscalls")
def test_a_program_cannot_lift_the_filter(any_box: Sandbox) -> None:
    source = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_SECUREBITS, PR_CAPBSET_READ = 22, 38, 28, 23
print(libc.prctl(PR_SET_SECCOMP, 0, 0, 0, 0), libc.prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0))
print(libc.prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), sum(libc.prctl(PR_CAPBSET_READ, n, 0, 0, 0) for n in (2, 8, 12, 21)))
"""
    assert run_python(any_box, source).check().stdout == "-1 -1\n-1 0\n"
