"""How each promise of the ability table is tried: a row each, with what it does and what it finds wrong."""

from __future__ import annotations

import os
import pwd
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from cloche.doctor import limits
from cloche.doctor.probe import PATH, parse_status
from cloche.doctor.traces import marked_processes
from cloche.engines.config import MASKED, ROOT_CAPABILITIES
from cloche.engines.verify import NAMESPACES
from cloche.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloche.doctor.patient import Patient

SETS: Final = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
REFUSALS: Final = frozenset(("EPERM", "ENOSYS"))
DOORS: Final = ("", "/proc/1/root", "/proc/self/cwd/../../../..")
KERNEL_SETTINGS: Final = ("kernel/core_pattern", "kernel/modprobe", "kernel/panic", "vm/overcommit_memory")
LOOK_SECONDS: Final = 2.0


class TrialOf(NamedTuple):
    """One promise's."""

    what: str
    find_faults: Callable[[Patient], list[str]]
    """What is not as it was promised. Raises: ClocheError where it could not be tried."""


def try_isolation(patient: Patient) -> list[str]:
    """No namespace is the host's, nothing of its files or kernel can be read or set."""
    links = patient.usual.ask("link", *(f"/proc/self/ns/{kind}" for kind in NAMESPACES))
    shared = [path for path, found in links.items() if found == os.readlink(path)]
    files = patient.usual.ask("look", *(f"{door}{patient.canary}" for door in DOORS))
    masked = patient.usual.ask("look", *(f"/proc/{name}" for name in MASKED))
    # Those that are masked by /dev/null may be written to.
    written = patient.usual.ask("write", *(f"/proc/sys/{name}" for name in KERNEL_SETTINGS))
    return [
        *(f"{path} is this machine's" for path in shared),
        *(f"{path} of this machine was read" for path, found in files.items() if found == "full"),
        *(f"{path} tells of this machine" for path, found in masked.items() if found == "full"),
        *(f"{path} can be written" for path, found in written.items() if found == "done"),
    ]


def try_own_uids(patient: Patient) -> list[str]:
    """A process of the box, seen from outside, is nobody who is known here."""
    command = patient.usual.box.commands.run([PATH, "stay", patient.mark], background=True)
    try:
        found = _wait_for_processes(patient.mark)
        owners = {os.stat(f"/proc/{pid}").st_uid for pid in found}
    finally:
        command.kill()
    known = {user.pw_uid: user.pw_name for user in pwd.getpwall()} | {os.geteuid(): "you"}
    return [f"the box's user is uid {uid} outside: {known[uid]}" for uid in sorted(owners) if uid in known]


def _wait_for_processes(mark: str) -> list[int]:
    deadline = time.monotonic() + LOOK_SECONDS
    while not (found := marked_processes(mark)):
        if time.monotonic() > deadline:
            raise SandboxError("processes of a sandbox can't be seen from here; is /proc mounted with hidepid?")
        time.sleep(0.005)
    return found


def try_network(patient: Patient) -> list[str]:
    """There is loopback and nothing else, and nobody is reached."""
    lines = patient.usual.show("/proc/net/dev").splitlines()[2:]
    interfaces = {line.partition(":")[0].strip() for line in lines}
    reached = patient.usual.ask("reach", str(patient.port), patient.abstract)
    return [
        *([] if interfaces == {"lo"} else [f"its interfaces are {', '.join(sorted(interfaces)) or 'not to be read'}"]),
        *(f"{name} was reached" for name, answer in reached.items() if answer == "done"),
    ]


def try_privileges(patient: Patient) -> list[str]:
    """No capability in any set, no way to new ones, and root is not to be had."""
    status = parse_status(patient.usual.show("/proc/self/status"))
    wanted = {**dict.fromkeys(SETS, "0" * 16), "NoNewPrivs": "1", "Uid": "\t".join(["1000"] * 4)}
    became = patient.usual.ask("root")
    return [*_differences(status, wanted), *(f"{name} worked" for name, answer in became.items() if answer == "done")]


def _differences(status: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is {status.get(name, 'missing')}, and not {value}"
        for name, value in wanted.items()
        if status.get(name) != value
    ]


def try_calls(patient: Patient) -> list[str]:
    """The filter is on, and each call that it must not let through is refused by it."""
    status = parse_status(patient.usual.show("/proc/self/status"))
    answers = patient.usual.ask("calls")
    passed = [f"{name} reached the kernel" for name, answer in answers.items() if answer not in REFUSALS]
    return [*_differences(status, {"Seccomp": "2"}), *passed]


def try_root(patient: Patient) -> list[str]:
    """Root of the box has what package managers need, and no more."""
    status = parse_status(patient.other.show("/proc/self/status"))
    most = sum(1 << number for number in ROOT_CAPABILITIES.values())
    surplus = [name for name in SETS if int(status.get(name, "0"), 16) & ~most]
    wanted = {"Uid": "\t".join(["0"] * 4), "NoNewPrivs": "1", "Seccomp": "2", "CapEff": f"{most:016x}"}
    return [*_differences(status, wanted), *(f"{name} holds more than the six" for name in surplus)]


def try_workspace(patient: Patient) -> list[str]:
    """What is shown to be read is read, and not written."""
    seen = patient.other.show("/workspace/file")
    made = patient.other.ask("make", "/workspace/made").get("/workspace/made")
    faults = [] if seen == patient.mark else ["the folder's file was not read"]
    return faults if made != "done" else [*faults, "a file was made in a folder that is read-only"]


def try_image(patient: Patient) -> list[str]:
    """What comes from the image stays as it is."""
    places = (f"/usr/bin/{patient.mark}", f"/etc/{patient.mark}")
    answers = patient.other.ask("make", *places)
    faults = [f"{place} was made in what belongs to this machine" for place in places if os.path.lexists(place)]
    return faults if answers[places[0]] != "done" else [*faults, "a file was made in /usr/bin"]


TRIALS: Final[Mapping[str, TrialOf]] = {
    "isolation": TrialOf("namespaces compared; files and kernel of this machine looked for", try_isolation),
    "own_uids": TrialOf("a process of the box looked at from outside", try_own_uids),
    "network_none": TrialOf("interfaces counted; this machine and addresses outside called", try_network),
    "no_privileges": TrialOf("capability sets read; setuid(0) called", try_privileges),
    "syscalls": TrialOf("some thirty calls made that must be refused", try_calls),
    "cpus": TrialOf("two processes spun", limits.try_cpus),
    "pids": TrialOf("processes started up to the limit", limits.try_pids),
    "output_bytes": TrialOf("sixteen times the limit written", limits.try_output),
    "timeout": TrialOf("a program that is deaf to signals outlasted its time", limits.try_timeout),
    "kill_tree": TrialOf("a daemon left behind and looked for", limits.try_kill_tree),
    "user_root": TrialOf("capability sets of root read", try_root),
    "workspace": TrialOf("a read-only folder read, and written to", try_workspace),
    "image": TrialOf("files made in /usr and /etc, and looked for on this machine", try_image),
    "inodes": TrialOf("files made up to the limit", limits.try_inodes),
    "disk_mb": TrialOf("files filled up to the limit", limits.try_disk),
    # Last: on a machine where it does not hold, the kernel may end more than this program.
    "memory_mb": TrialOf("memory taken up to the limit", limits.try_memory),
}
"""All promises but `leaves_nothing`, which is tried by the end of the boxes, in the order in which they are tried."""
