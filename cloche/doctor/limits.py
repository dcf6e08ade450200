"""How the limits are tried: each is run into, and what was to be had is bounded should it not be there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.doctor.patient import LIMITS, OUTPUT_BYTES
from cloche.doctor.traces import marked_processes, wait_until_gone
from cloche.errors import SandboxError

if TYPE_CHECKING:
    from cloche.doctor.patient import Patient
    from cloche.doctor.probe import Probe
    from cloche.models import LimitName

STAY_SECONDS: Final = 0.3
LATE_SECONDS: Final = 2.0
SPIN_SECONDS: Final = 0.4
CPU_PERIOD: Final = 0.1
FOLDER: Final = "/home/user/full"


def try_cpus(patient: Patient) -> list[str]:
    """Two processes that spin get the share, and one period more at most."""
    box = patient.usual.box
    before = box.usage().cpu_seconds
    result = patient.usual.run("spin", str(SPIN_SECONDS))
    after = box.usage().cpu_seconds
    if before is None or after is None:
        raise SandboxError("nothing accounts the CPU time of this sandbox")
    most = LIMITS["cpus"] * (result.wall_seconds + CPU_PERIOD) * 1.05
    used = after - before
    return [f"{used:.2f} s of CPU time in {result.wall_seconds:.2f} s"] if used > most else []


def try_memory(patient: Patient) -> list[str]:
    """A program that wants half as much again is ended."""
    return _try_limit(patient.usual, "memory_mb", "memory", LIMITS["memory_mb"])


def try_disk(patient: Patient) -> list[str]:
    """No more can be written."""
    return _try_limit(patient.usual, "disk_mb", "disk", LIMITS["disk_mb"], FOLDER)


def try_inodes(patient: Patient) -> list[str]:
    """No more files can be made."""
    return _try_limit(patient.usual, "inodes", "files", LIMITS["inodes"], FOLDER)


def try_pids(patient: Patient) -> list[str]:
    """No more processes can be started."""
    return _try_limit(patient.usual, "pids", "processes", LIMITS["pids"])


def _try_limit(probe: Probe, limit: LimitName, what: str, most: int, folder: str = "") -> list[str]:
    """Taking half as much again: what a limit lets through is bounded, should it not hold."""
    if folder:
        probe.box.files.make_dir(folder, mode=0o777)
    try:
        result = probe.run(what, str(most + most // 2), *([folder] if folder else []))
    finally:
        if folder:
            probe.box.files.remove(folder, recursive=True)
    got = int(result.stdout) if result.stdout.strip().isdecimal() else 0
    faults = [f"{got} were to be had, and the limit is {most}"] if got > most else []
    if result.limit_hit != limit:
        faults.append(f"the result says {result.limit_hit or 'of no limit'} (exit code {result.exit_code})")
    return faults


def try_timeout(patient: Patient) -> list[str]:
    """A program that is deaf to every signal ends when its time is up."""
    result = patient.usual.run("stay", f"{patient.mark}-late", timeout=STAY_SECONDS)
    faults = [] if result.limit_hit == "timeout" else [f"the result says {result.limit_hit or 'of no limit'}"]
    if result.wall_seconds > STAY_SECONDS + LATE_SECONDS:
        faults.append(f"it took {result.wall_seconds:.1f} s, and the limit is {STAY_SECONDS:g} s")
    return faults


def try_kill_tree(patient: Patient) -> list[str]:
    """What detached itself twice is gone with who started it."""
    mark = f"{patient.mark}-tree"
    patient.usual.run("stay", mark, timeout=STAY_SECONDS)
    left = wait_until_gone(lambda: [f"process {pid} outlived it" for pid in marked_processes(mark)])
    return left[:3]


def try_output(patient: Patient) -> list[str]:
    """Of much output as much is kept as the limit says."""
    result = patient.usual.run("flood", str(16 * OUTPUT_BYTES))
    kept = 16 * OUTPUT_BYTES - result.output_dropped
    faults = [f"{kept} octets were kept, and the limit is {OUTPUT_BYTES}"] if kept > OUTPUT_BYTES else []
    return faults if result.limit_hit == "output_bytes" else [*faults, "the result does not say that output was cut"]
