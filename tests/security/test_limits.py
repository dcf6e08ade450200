"""Each limit holds, to the unit, is reported by its name, and leaves the box usable (promises 4 and 6)."""

from __future__ import annotations

import re
import resource
import time
from typing import TYPE_CHECKING

import pytest

from cloche import settings
from tests.security.lab import attack, processes_of, run_python, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cloche import Sandbox

MIB = 1 << 20


def folder_of(box: Sandbox) -> Path:
    return settings.home() / "boxes" / box.id


def assert_usable(box: Sandbox) -> None:
    assert box.commands.run(["echo", "alive"]).check().stdout == "alive\n"


@pytest.mark.promise("pids")
@pytest.mark.parametrize("kind", ["forks", "threads"])
def test_processes_end_exactly_at_the_limit(make: Callable[..., Sandbox], kind: str) -> None:
    box = make(pids=20)
    result = attack(box, "bomb", kind)
    assert int(result.stdout) == 19
    assert (result.limit_hit, result.exit_code) == ("pids", 1)
    assert "20" in (result.message or "")
    assert box.usage().pids_refused > 0


@pytest.mark.promise("pids")
def test_the_keeper_answers_while_every_process_is_taken(make: Callable[..., Sandbox]) -> None:
    box = make(pids=20)
    bomb = box.commands.run(
        ["python3", "-c", "import os\nwhile True:\n try: os.fork()\n except OSError: pass"], background=True
    )
    wait_until(lambda: box.usage().pids_refused > 0, "the bomb has gone off")
    assert processes_of(box) <= 20
    assert box.files.list("/")
    assert bomb.kill()
    wait_until(lambda: box.usage().processes == 0, "nothing of the bomb is left")
    assert_usable(box)


@pytest.mark.promise("pids")
def test_a_shell_fork_bomb_is_reported_by_name(make: Callable[..., Sandbox]) -> None:
    box = make(pids=30, timeout=2)
    result = box.commands.run("bomb() { bomb | bomb & }; bomb; wait; sleep 1; exit 1")
    assert result.limit_hit in ("pids", "timeout")
    wait_until(lambda: processes_of(box) < 7 or box.commands.run(["true"]).ok, "the box is usable again")


@pytest.mark.promise("memory_mb")
def test_memory_ends_at_the_limit(make: Callable[..., Sandbox]) -> None:
    box = make(memory_mb=64)
    result = attack(box, "bomb", "memory")
    assert (result.signal, result.limit_hit) == (9, "memory_mb")
    assert result.peak_memory_bytes <= 64 * MIB * 1.05
    assert "64 MB" in (result.message or "")
    assert_usable(box)


@pytest.mark.promise("memory_mb")
def test_memory_of_many_processes_counts_together(make: Callable[..., Sandbox]) -> None:
    box = make(memory_mb=64, timeout=3)
    attack(box, "swarm", "8000", "20", timeout=3)
    assert box.usage().oom_kills > 0
    assert_usable(box)


def test_what_the_kernel_keeps_for_a_program_counts_as_memory(make: Callable[..., Sandbox]) -> None:
    box = make(memory_mb=64)
    attack(box, "bomb", "sockets")
    memory = box.usage().memory_bytes
    assert memory is not None
    assert memory < 64 * MIB
    assert_usable(box)


@pytest.mark.promise("memory_mb")
def test_shared_memory_counts_as_memory_and_leaves_room(make: Callable[..., Sandbox]) -> None:
    box = make(memory_mb=64)
    result = attack(box, "bomb", "shm")
    assert int(result.stdout) <= 32
    memory = box.usage().memory_bytes
    assert memory is not None
    assert memory > int(result.stdout) * MIB
    assert_usable(box)


@pytest.mark.parametrize("kind", ["memory", "messages", "semaphores"])
def test_nothing_that_outlives_its_process_takes_the_boxs_memory(make: Callable[..., Sandbox], kind: str) -> None:
    box = make(memory_mb=64)
    for _ in range(2):
        attack(box, "ipc", kind)
    memory = box.usage().memory_bytes
    assert memory is not None
    assert memory < 16 * MIB
    assert run_python(box, "print(len(b'x' * (24 << 20)))").check().stdout == f"{24 << 20}\n"


def test_small_memory_filesystems_have_their_own_end(make: Callable[..., Sandbox]) -> None:
    box = make(user="root", memory_mb=64)
    result = box.commands.run("cat /dev/zero > /dev/file; stat -c %s /dev/file")
    assert int(result.stdout.split()[-1]) <= 64 << 10


def octets_on_disk(box: Sandbox) -> int:
    """On this machine's disk; an ordinary user's box has it in memory."""
    image = folder_of(box) / "disk.img"
    return image.stat().st_blocks * 512 if image.exists() else box.usage().disk_bytes


@pytest.mark.promise("disk_mb")
def test_the_disk_ends_at_the_limit(make: Callable[..., Sandbox]) -> None:
    box = make(disk_mb=64)
    result = attack(box, "bomb", "disk")
    assert 0 < int(result.stdout) <= 64
    assert (result.limit_hit, result.exit_code) == ("disk_mb", 1)
    assert octets_on_disk(box) <= 65 * MIB
    assert_usable(box)


@pytest.mark.promise("disk_mb")
def test_a_sparse_file_is_no_way_around_it(make: Callable[..., Sandbox]) -> None:
    box = make(disk_mb=64)
    assert attack(box, "bomb", "holes").signal in (25, None)
    source = "f = open('/tmp/f', 'wb'); f.truncate(15 << 20)\nfor i in range(15): f.seek(i << 20); f.write(b'x' * (1 << 20))\nf.flush()"
    assert run_python(box, source * 1).exit_code in (0, 1)
    assert octets_on_disk(box) <= 65 * MIB
    assert_usable(box)


@pytest.mark.promise("inodes")
def test_inodes_end_at_the_limit(make: Callable[..., Sandbox]) -> None:
    box = make(disk_mb=64, inodes=256)
    result = attack(box, "bomb", "inodes")
    assert 0 < int(result.stdout) <= 256
    assert (result.limit_hit, result.exit_code) == ("inodes", 1)
    assert_usable(box)


def test_descriptors_end_at_the_limit(sandbox: Sandbox) -> None:
    assert int(attack(sandbox, "bomb", "descriptors").stdout) <= 4096
    assert_usable(sandbox)


@pytest.mark.promise("cpus")
@pytest.mark.parametrize("cpus", [0.25, 1.0])
def test_cpu_time_stays_within_the_share(make: Callable[..., Sandbox], cpus: float) -> None:
    box = make(cpus=cpus)
    source = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    spin = box.commands.run(["python3", "-c", source], background=True)
    wait_until(lambda: (box.usage().cpu_seconds or 0) > 0.2, "it spins")
    seen: list[tuple[float, float]] = []
    began, before = time.monotonic(), box.usage().cpu_seconds or 0
    while time.monotonic() < began + 3:
        seen.append(((box.usage().cpu_seconds or 0) - before, time.monotonic() - began))
        box.commands.list()
    spin.kill()
    used, passed = seen[-1]
    # One period more than its share may fall into any span of time.
    assert used <= cpus * (passed * 1.05 + 0.1)


@pytest.mark.promise("output_bytes")
def test_a_gigabyte_of_output_is_cut_and_costs_the_host_nothing(make: Callable[..., Sandbox]) -> None:
    box = make(output_bytes=1 << 20, timeout=20)
    attack(box, "gates", "x32")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = box.commands.run("head -c 1G /dev/zero")
    assert result.limit_hit == "output_bytes"
    assert len(result.stdout) <= (1 << 20) + 200
    assert result.output_dropped == (1 << 30) - (
        len(result.stdout) - len(re.findall("(?s)\n\\[.*?\\]\n", result.stdout)[0])
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 24 << 10


def test_output_without_end_in_the_background_costs_the_host_nothing(make: Callable[..., Sandbox]) -> None:
    box = make(output_bytes=1 << 20)
    endless = box.commands.run(["cat", "/dev/zero"], background=True, timeout=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = endless.wait(timeout=20)
    assert result.limit_hit == "timeout"
    assert len(result.stdout) < 4 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
