"""Nothing of this machine's files can be seen, read or changed from a box (promise 1)."""

from __future__ import annotations

import os
import secrets
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.lab import run_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloche import Sandbox

MASKED = """
kallsyms kcore kmsg config.gz cmdline diskstats partitions modules iomem ioports interrupts key-users keys slabinfo
vmallocinfo pagetypeinfo kpagecount kpageflags kpagecgroup timer_list swaps mtrr sysrq-trigger sys/kernel/random/boot_id
""".split()
HARMLESS = {
    "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
}  # fmt: skip


@pytest.fixture(scope="module")
def canaries(lab_home: Path) -> Iterator[dict[Path, str]]:
    """Files on this machine that everyone may read, each with a word in it."""
    places = ("/root", "/home", "/etc", "/var/tmp", "/var/lib", "/tmp", "/run", "/opt", "/srv", str(lab_home))
    found: dict[Path, str] = {}
    with ExitStack() as stack:
        for place in places:
            path = Path(place, f"canary-{secrets.token_hex(8)}")
            path.write_text(secrets.token_hex(16))
            path.chmod(0o666)
            stack.callback(path.unlink)
            found[path] = path.read_text()
        yield found
        assert {path: path.read_text() for path in found} == found


def test_no_canary_is_there_under_its_name(any_box: Sandbox, canaries: dict[Path, str]) -> None:
    doors = ("", "/proc/1/root", "/proc/self/root", "/proc/self/cwd/../../../..", "/dev/fd/3", "/dev/fd/9")
    paths = [f"{door}{path}" for door in doors for path in canaries]
    source = "import os, sys; print([p for p in sys.argv[1:] if os.path.lexists(p)])"
    assert run_python(any_box, source, *paths).check().stdout == "[]\n"


@pytest.mark.promise("isolation")
def test_no_canary_is_anywhere_in_the_box(any_box: Sandbox, canaries: dict[Path, str]) -> None:
    names = " -o ".join(f"-name '{path.name}'" for path in canaries)
    assert any_box.commands.run(f"find / -xdev \\( {names} \\) 2>/dev/null").stdout == ""


@pytest.mark.promise("isolation")
def test_a_box_sees_nothing_of_another(make: Callable[..., Sandbox]) -> None:
    first, second = make(), make()
    first.files.write("/tmp/secret", "of the first")
    first.files.write("/dev/shm/secret", "of the first")
    first.commands.run(["sleep", "60"], background=True, tag="of the first")
    assert second.files.list("/tmp") == second.files.list("/dev/shm") == []
    assert "sleep" not in second.commands.run("cat /proc/[0-9]*/comm").stdout
    assert first.id not in second.commands.run("find / -xdev; cat /proc/*/mountinfo /proc/*/cgroup").stdout


def test_a_box_does_not_know_the_names_of_boxes_or_of_the_data_folder(any_box: Sandbox, lab_home: Path) -> None:
    seen = any_box.commands.run(
        "cat /proc/self/mountinfo /proc/*/cgroup /proc/*/environ /proc/1/cmdline; env; hostname"
    )
    assert any_box.id not in seen.stdout
    assert str(lab_home) not in seen.stdout


def test_nothing_of_this_machines_environment_is_there(any_box: Sandbox) -> None:
    seen = any_box.commands.run("env; cat /proc/*/environ").stdout
    assert "CANARY_OF_THE_HOST" not in seen
    assert "CLOCHE" not in seen


def test_the_box_has_a_name_and_processes_of_its_own(any_box: Sandbox) -> None:
    assert any_box.commands.run("hostname; uname -n").stdout.split() == ["cloche", "cloche"]
    pids = [int(pid) for pid in any_box.commands.run("ls /proc").stdout.split() if pid.isdigit()]
    assert len(pids) < 10
    assert os.getpid() == 1 or str(os.getpid()) not in any_box.commands.run("cat /proc/[0-9]*/stat").stdout.split("\n")


@pytest.mark.promise("isolation")
def test_what_is_masked_in_proc_is_empty(any_box: Sandbox) -> None:
    source = """
import os, sys
for name in sys.argv[1:]:
    path = '/proc/' + name
    try:
        found = os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(64)
    except OSError:
        continue
    if found:
        print(name, found)
"""
    assert run_python(any_box, source, *MASKED).check().stdout == ""


def test_no_kernel_setting_can_be_written(any_box: Sandbox) -> None:
    source = """
import os
for root in ('/proc/sys', '/proc/irq', '/proc/bus', '/proc/fs', '/proc/sysrq-trigger', '/proc/acpi', '/proc/scsi'):
    names = [os.path.join(f, n) for f, _, ns in os.walk(root) for n in ns] if os.path.isdir(root) else [root]
    for name in names:
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            continue
        if os.stat(name).st_rdev != os.makedev(1, 3):
            print(name)
"""
    assert run_python(any_box, source).check().stdout == ""


def test_there_is_neither_sys_nor_a_cgroup_mount(any_box: Sandbox) -> None:
    assert any_box.files.list("/sys") == []
    kinds = {line.split(" - ")[1].split()[0] for line in any_box.files.read("/proc/self/mountinfo").splitlines()}
    assert not kinds & {"sysfs", "cgroup", "cgroup2", "securityfs", "debugfs", "tracefs", "bpf", "configfs", "mqueue"}


def test_no_mount_honours_setuid_and_none_but_dev_has_devices(any_box: Sandbox) -> None:
    for line in any_box.files.read("/proc/self/mountinfo").splitlines():
        fields, _, kind = line.partition(" - ")
        target, options = fields.split()[4:6]
        if kind.split()[0] in ("overlay", "ext4", "proc", "tmpfs") and not target.startswith("/proc/"):
            assert "nosuid" in options, line
            assert "nodev" in options or target == "/dev", line


def test_dev_holds_only_harmless_nodes(any_box: Sandbox) -> None:
    assert {entry.name for entry in any_box.files.list("/dev")} <= HARMLESS


def test_no_device_can_be_made(any_box: Sandbox) -> None:
    source = """
import os, stat
for folder in ('/tmp', '/dev', '/dev/shm', '/home/user'):
    for kind, device in ((stat.S_IFBLK, (7, 0)), (stat.S_IFBLK, (254, 0)), (stat.S_IFCHR, (1, 1)), (stat.S_IFCHR, (10, 237))):
        try:
            os.mknod(folder + '/node', kind | 0o666, os.makedev(*device))
        except OSError:
            continue
        print(folder, kind, device)
"""
    assert run_python(any_box, source).check().stdout == ""


@pytest.mark.promise("user_root")
@pytest.mark.parametrize("folder", ["/usr", "/usr/bin", "/.cloche"])
def test_what_comes_from_this_machine_is_read_only_also_for_root(any_box: Sandbox, folder: str) -> None:
    tries = f"touch {folder}/a; rm -f {folder}/*; chmod 777 {folder}; mv {folder} /tmp/away; ln -s /tmp {folder}/l"
    if folder == "/.cloche":
        tries = "echo x > /.cloche/keeper; rm -f /.cloche/keeper; chmod 777 /.cloche/keeper"
    before = sorted(os.listdir(folder)) if folder != "/.cloche" else ["keeper"]
    any_box.commands.run(tries)
    assert sorted(entry.name for entry in any_box.files.list(folder)) == before
    assert any_box.commands.run(["sh", "-c", f"echo x > {folder}/a"]).exit_code != 0 or folder == "/.cloche"


@pytest.mark.promise("image")
def test_root_changes_its_own_layer_and_never_the_image(make: Callable[..., Sandbox], lab_home: Path) -> None:
    box = make(user="root")
    word = secrets.token_hex(16)
    box.commands.run(f"echo {word} > /etc/passwd; rm -rf /etc/ssl /var; touch /etc/{word}").check()
    assert subprocess.run(["grep", "-rl", word, str(lab_home / "images")], capture_output=True).stdout == b""
    assert not list((lab_home / "images").rglob(word))
    assert make().files.read("/etc/passwd").startswith("root:")


def test_the_memory_and_the_disks_of_this_machine_have_no_door(any_box: Sandbox) -> None:
    for name in (
        "mem",
        "kmem",
        "port",
        "kmsg",
        "kvm",
        "fuse",
        "net/tun",
        "loop0",
        "loop-control",
        "vda",
        "sda",
        "console",
    ):
        assert not any_box.files.exists(f"/dev/{name}")
