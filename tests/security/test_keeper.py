"""The keeper is PID 1, and out of reach of all that runs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.security.lab import run_python

if TYPE_CHECKING:
    from cloche import Sandbox


@pytest.mark.promise("isolation")
def test_the_keeper_cannot_be_looked_into(any_box: Sandbox) -> None:
    source = """
import os
for name in ('mem', 'environ', 'auxv', 'maps', 'smaps', 'pagemap', 'syscall', 'stack', 'personality', 'io', 'map_files', 'root/etc'):
    try:
        path = '/proc/1/' + name
        if os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(8):
            print(name)
    except OSError:
        continue
for name in ('exe', 'cwd', 'root', *('fd/%d' % n for n in range(40)), *('ns/' + n for n in ('mnt', 'net', 'user'))):
    try:
        print(name, os.readlink('/proc/1/' + name))
    except OSError:
        continue
"""
    assert run_python(any_box, source).check().stdout == ""


def test_the_keepers_descriptors_cannot_be_opened(any_box: Sandbox) -> None:
    source = """
import os
for number in range(64):
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_PATH):
        try:
            os.open('/proc/1/fd/%d' % number, flags)
        except OSError:
            continue
        print(number, flags)
"""
    assert run_python(any_box, source).check().stdout == ""


def test_the_keeper_survives_every_signal(any_box: Sandbox) -> None:
    source = """
import os
for signal in range(1, 65):
    try:
        os.kill(1, signal)
    except OSError:
        continue
"""
    run_python(any_box, source).check()
    assert any_box.commands.run(["echo", "alive"]).check().stdout == "alive\n"


def test_the_keeper_cannot_be_traced(any_box: Sandbox) -> None:
    source = """
import ctypes
libc = ctypes.CDLL(None)
print([libc.ptrace(request, 1, 0, 0) for request in (16, 0x4206)])
"""
    assert run_python(any_box, source).check().stdout == "[-1, -1]\n"


def test_a_process_gets_three_descriptors_and_no_other(any_box: Sandbox) -> None:
    source = "import os; print(sorted(n for n in map(int, os.listdir('/proc/self/fd')) if os.path.exists(f'/proc/self/fd/{n}')))"
    assert run_python(any_box, source).check().stdout == "[0, 1, 2]\n"
    with_input = any_box.commands.run(["python3", "-c", source], stdin="x").check()
    assert with_input.stdout == "[0, 1, 2]\n"


def test_a_worker_of_the_keeper_gives_nothing_away(any_box: Sandbox) -> None:
    """Reading a file is done by a process that is the same user: its memory is a copy of the keeper's."""
    source = """
import os, time
seen = set()
end = time.monotonic() + 1
while time.monotonic() < end:
    for pid in os.listdir('/proc'):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        for name in ('mem', 'fd/3', 'fd/4', 'environ', 'root/etc'):
            try:
                os.close(os.open(f'/proc/{pid}/{name}', os.O_RDONLY))
            except OSError:
                continue
            if open(f'/proc/{pid}/comm').read() == 'keeper\\n':
                seen.add(name)
print(sorted(seen))
"""
    spy = any_box.commands.run(["python3", "-c", source], background=True)
    while any(process.pid == spy.pid and process.exit_code is None for process in any_box.commands.list()):
        any_box.files.list("/etc", depth=3)
    assert spy.wait(timeout=10).stdout == "[]\n"


def test_the_keepers_socket_is_nowhere_in_the_box(any_box: Sandbox) -> None:
    assert any_box.commands.run("find / -xdev -type s 2>/dev/null").stdout == ""
    unix = any_box.files.read("/proc/net/unix").splitlines()[1:]
    assert not any("keeper" in line for line in unix)


def test_the_cgroups_of_executions_are_nowhere_in_the_box(any_box: Sandbox) -> None:
    assert any_box.commands.run("find / -xdev -name 'cgroup.procs' -o -name 'pids.max' 2>/dev/null").stdout == ""


def test_the_files_interface_has_no_more_rights_than_the_user(sandbox: Sandbox) -> None:
    from cloche.errors import FileError

    for path in ("/etc/mark", "/.cloche/mark", "/mark", "/usr/mark", "/proc/sys/kernel/hostname", "/root/mark"):
        try:
            sandbox.files.write(path, "x")
        except FileError:
            continue
        raise AssertionError(f"{path} was written")


def test_links_made_inside_lead_the_files_interface_nowhere_outside(any_box: Sandbox) -> None:
    any_box.commands.run("ln -sfn / /tmp/out; ln -sfn /proc/1/root /tmp/keeper; ln -sfn /proc/1/fd /tmp/fds")
    assert {entry.name for entry in any_box.files.list("/tmp/out")} == {entry.name for entry in any_box.files.list("/")}
    for path in ("/tmp/keeper/etc/hostname", "/tmp/fds/3"):
        try:
            any_box.files.read(path)
        except OSError:
            continue
        raise AssertionError(f"{path} was read")
