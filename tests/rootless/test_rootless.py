"""The embedded engine for an ordinary user, with what `cloche setup` prepared and without."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloche import faults
from cloche.engines.cgroups import find_hierarchies, parent_of
from cloche.engines.rootless import find_processes, is_about, mark_of
from cloche.images.npm import PACKAGES
from tests.registry import Registry, node, pack, serve
from tests.test_images_members import member

if TYPE_CHECKING:
    from tests.rootless.conftest import Ordinary

LIMITS = ["cpus", "memory_mb", "pids"]
KEEPER_OF = """
def keeper_of(box):
    return box._record.box.state["pid"]

def status_of(box, name):
    lines = open(f"/proc/{keeper_of(box)}/status").read().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name))
"""
MAKE_AND_DELETE = "from cloche import *\nbox = Sandbox.create(engine='embedded:crun')\nprint(box.id)\nbox.kill()"


@pytest.mark.promise("isolation", "own_uids", "memory_mb", "disk_mb", "inodes", "pids", "cpus", "workspace")
@pytest.mark.timeout(600)
def test_the_conformance_suite_holds_for_an_ordinary_user(prepared: Ordinary) -> None:
    options = ["-q", "-p", "no:cacheprovider", "tests/conformance"]
    status, said = prepared.run("-m", "pytest", *options, TEST_ENGINES="embedded:crun embedded:runc")
    assert status == 0, said[-6000:]


@pytest.mark.promise("kill_tree")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("workspace", ["None", "os.environ['HOME'] + '/shown'"])
def test_in_a_delegated_tree_executions_have_cgroups_of_their_own(delegated: Ordinary, workspace: str) -> None:
    code = f"""
import os
from cloche.engines import engine_named
os.makedirs(os.environ["HOME"] + "/shown", exist_ok=True)
with Sandbox.create(workspace={workspace}) as box:
    late = box.commands.run("(setsid sleep 60 &) ; sleep 60", timeout=0.3)
    cgroup = open(f"/proc/{{box._record.box.state['pid']}}/cgroup").read().splitlines()[-1]
    left = [process.argv for process in box.commands.list() if process.exit_code is None]
print(json.dumps([engine_named(box.engine).abilities()["kill_tree"].enforced, late.limit_hit, cgroup, left, box.id]))
"""
    enforced, hit, cgroup, left, id = delegated.ask(code)
    assert (enforced, hit) == ("kernel", "timeout")
    assert cgroup.endswith(f"/cloche-{pwd.getpwnam(delegated.name).pw_uid}/{id}")
    assert left == []


def test_what_is_not_in_force_is_refused_with_what_helps(unprepared: Ordinary) -> None:
    told = unprepared.ask(
        "try: Sandbox.create()\nexcept Unsupported as error: print(json.dumps([error.message, error.data]))"
    )
    assert told[0].startswith("cpus, memory_mb, pids can't be enforced by engine 'embedded:")
    assert "cloche setup" in told[0]
    assert "--without cpus,memory_mb,pids" in told[0]


def test_the_first_run_says_what_root_is_to_do(unprepared: Ordinary) -> None:
    status, said = unprepared.run("-m", "cloche.first_run")
    assert status == 1
    assert f"setup {unprepared.name}\n" in said


def test_what_is_missing_is_told_to_whom_it_is_missing(prepared: Ordinary, unprepared: Ordinary) -> None:
    for user, wanted in ((prepared, 0), (unprepared, 1)):
        status, said = user.run("-m", "cloche", "setup", "--check", "--json")
        assert status == wanted, said
        states = {step["name"]: step["ready"] for step in json.loads(said)["steps"]}
        assert states["cgroups"] is (wanted == 0)


@pytest.mark.parametrize("option", ["memory_mb=64", "pids=10", "cpus=0.5", "user='root'"])
def test_what_is_asked_for_by_name_is_never_left_out(unprepared: Ordinary, option: str) -> None:
    without = [name for name in LIMITS if not option.startswith(name)]
    code = (
        f"try: Sandbox.create({option}, without={without})\nexcept Unsupported as error: print(json.dumps(str(error)))"
    )
    assert "can't be enforced" in unprepared.ask(code)


def test_who_goes_without_is_told_what_is_missing_and_the_rest_holds(unprepared: Ordinary) -> None:
    code = f"""
with Sandbox.create(without={LIMITS}, disk_mb=16) as box:
    full = box.commands.run("head -c 100M /dev/zero >big")
    late = box.commands.run("sleep 60 & wait", timeout=0.3)
    uid = box.commands.run("id -u").stdout
    print(json.dumps([box.missing, full.limit_hit, late.limit_hit, uid]))
"""
    assert unprepared.ask(code) == [LIMITS, "disk_mb", "timeout", "1000\n"]


def test_a_prepared_user_misses_nothing(prepared: Ordinary) -> None:
    code = f"with Sandbox.create(without={LIMITS}) as box: print(json.dumps([box.missing, box.usage().memory_bytes]))"
    missing, memory = prepared.ask(code)
    assert missing == []
    assert 0 < memory < 64 << 20


@pytest.mark.promise("own_uids")
def test_each_box_has_ids_that_no_other_has(prepared: Ordinary) -> None:
    code = """
boxes = [Sandbox.create() for _ in range(3)]
for box in boxes:
    box.commands.run("sleep 60", background=True)
import os, time
def ids():
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{name}/comm").read() == "sleep\\n":
                found.add(os.stat(f"/proc/{name}").st_uid)
        except OSError: continue
    return found
deadline = time.monotonic() + 10
while len(ids()) < 3 and time.monotonic() < deadline: time.sleep(0.01)
print(json.dumps(len(ids() - {os.getuid(), 0})))
for box in boxes: box.kill()
"""
    assert prepared.ask(code) >= 3


@pytest.mark.promise("workspace")
@pytest.mark.parametrize("access", ["ro", "rw"])
def test_a_workspace_belongs_to_its_owner_on_both_sides(prepared: Ordinary, access: str) -> None:
    code = f"""
import os, pathlib
folder = pathlib.Path(os.environ["HOME"], "files-{access}")
folder.mkdir(mode=0o700, exist_ok=True)
(folder / "secret").write_text("mine")
(folder / "secret").chmod(0o600)
with Sandbox.create(workspace=f"{{folder}}:{access}") as box:
    read = box.commands.run("cat secret").stdout
    made = box.commands.run("touch new && stat -c %u new").stdout
    root = box.commands.run("touch /etc/x; echo $?").stdout
print(json.dumps([read, made, (folder / "new").exists() and os.stat(folder / "new").st_uid == os.getuid(), root]))
"""
    made = ["1000\n", True] if access == "rw" else ["", False]
    read, *found = prepared.ask(code)
    assert read == "mine"
    assert found[:2] == made


@pytest.mark.promise("isolation")
def test_a_box_sees_nothing_of_its_maker(prepared: Ordinary) -> None:
    code = """
import os
with Sandbox.create() as box:
    seen = box.commands.run(["ls", os.environ["HOME"]]).exit_code
    shells = box.commands.run("grep -c . /etc/shadow").stdout
    processes = box.commands.run("ls -d /proc/[0-9]* | wc -l").stdout
    status = box.commands.run("cat /proc/self/status").stdout
print(json.dumps([seen, shells, int(processes), status]))
"""
    seen, shells, processes, status = prepared.ask(code)
    assert (seen != 0, shells) == (True, "")
    assert processes < 6
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (int(found["CapEff"], 16), int(found["CapBnd"], 16)) == (0, 0)
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")


@pytest.mark.promise("image")
@pytest.mark.parametrize("who", ["prepared", "unprepared"])
def test_an_archive_becomes_an_image_whose_files_are_all_one_user_s(request: pytest.FixtureRequest, who: str) -> None:
    user: Ordinary = request.getfixturevalue(who)
    code = f"""
import os, pathlib, re, subprocess, tarfile
from cloche import settings
from cloche.images import import_archive
from cloche.images.archives import remove_image
path = pathlib.Path(settings.home(), "{who}.tar")
files = {{"bin/sh": "/bin/dash", "bin/id": "/usr/bin/id"}}
for program in list(files.values()):
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    files |= {{name[1:]: name for name in re.findall(r"(/\\S+) \\(0x", said)}}
with tarfile.open(path, "w") as tar:
    for number, (name, source) in enumerate(files.items()):
        member = tar.gettarinfo(os.path.realpath(source), name)
        member.uid = member.gid = number
        with open(source, "rb") as file: tar.addfile(member, file)
import_archive(settings.home(), "small", path)
with Sandbox.create(image="small", without={LIMITS}) as box:
    said = box.commands.run("id -u").stdout
remove_image(settings.home(), "small")
print(json.dumps(said))
"""
    assert user.ask(code) == "1000\n"


@pytest.mark.parametrize("who", ["prepared", "unprepared"])
def test_a_runtime_is_added_to_the_user_s_own_folder_and_runs(request: pytest.FixtureRequest, who: str) -> None:
    user: Ordinary = request.getfixturevalue(who)
    npm = pack(member("package/bin/npm-cli.js", mode=0o755))
    registry = Registry({PACKAGES[os.uname().machine]: {"77.5.0": node()}, "npm": {"11.1.0": npm}})
    registry.go_on.set()
    code = f"""
import os
from cloche import settings
from cloche.images.additions import add_runtime
from cloche.sandboxes.removals import remove_runtime
os.umask(0o077)
os.chmod(os.environ["HOME"], 0o700)
added, _ = add_runtime(settings.home(), "node 77", print)
with Sandbox.create("node77", without={LIMITS}) as box:
    said = box.commands.run("node; npm; touch $(dirname $(which node))/x || echo read-only").stdout.split()
os.chmod(os.environ["HOME"], 0o755)
print(json.dumps([added.path, said, remove_runtime("node77"), os.listdir(settings.home() / "scratch")]))
"""
    with serve(registry) as variables:
        path, said, removed, left = user.ask(code, **variables)
    assert path == "/opt/cloche/runtimes/node-77.5.0/bin/node"
    assert said == ["v22.5.0", "v22.5.0", "read-only"]
    assert (removed, left) == ("node-77.5.0", [])


@pytest.mark.parametrize(
    ("how", "reason"),
    [("box._record", "idle"), ("import os, signal; os.kill(keeper_of(box), signal.SIGKILL)", "killed")],
)
def test_a_box_that_ends_by_itself_says_why(prepared: Ordinary, how: str, reason: str) -> None:
    code = f"""
import time
{KEEPER_OF}
from cloche.sandboxes.sweep import sweep
box = Sandbox.create(idle_timeout={0.3 if reason == "idle" else 60})
{how}
deadline = time.monotonic() + 10
while box.is_running() and time.monotonic() < deadline: time.sleep(0.02)
print(json.dumps(sweep()[box.id]))
"""
    assert prepared.ask(code) == reason


@pytest.mark.timeout(300)
def test_killed_at_each_step_nothing_is_left(prepared: Ordinary) -> None:
    points = [*faults.POINTS, *(f"{faults.LAUNCHER}{step}" for step in range(1, 26))]
    for name in points:
        prepared.run("-c", MAKE_AND_DELETE, CLOCHE_FAULT=name)
    left = prepared.ask(
        "from cloche.sandboxes.sweep import sweep\n"
        "sweep()\nfor box in Sandbox.list(): box.kill()\n"
        "from cloche.sandboxes import boxes\n"
        "print(json.dumps([row.id for row in boxes.rows().present()]))"
    )
    assert left == []
    assert traces_of(prepared) == []


def traces_of(user: Ordinary) -> list[str]:
    """What boxes of that user's would leave: processes, cgroups, leases, state, folders."""
    uid = pwd.getpwnam(user.name).pw_uid
    keepers = [name for name in filter(str.isdigit, os.listdir("/proc")) if _is_keeper_of(name, user)]
    cgroups = [
        str(path)
        for mount in find_hierarchies().v1.values()
        for path in (mount / parent_of(uid)).glob("*")
        if path.is_dir()
    ]
    run = user.folder / ".local" / "state" / "cloche"
    kept = [str(path) for name in ("ids", "crun", "runc") for path in (run / name).glob("*")]
    return [*keepers, *cgroups, *kept, *map(str, (user.folder / "data" / "boxes").glob("*"))]


def _is_keeper_of(name: str, user: Ordinary) -> bool:
    try:
        words = Path("/proc", name, "cmdline").read_text().split("\0")
        return words[0] == "/.cloche/keeper" and str(user.folder) in Path("/proc", name, "mountinfo").read_text()
    except OSError:
        return False


def test_only_what_makes_a_box_is_taken_for_it() -> None:
    id = "a" * 20
    mark = mark_of(id)
    assert is_about(["/.cloche/keeper", "--name", mark], id, mark)
    assert is_about(["launch", "--folder", f"/home/boxes/{id}"], id, mark)
    assert not is_about(["crun", "--root", f"/x/{id}y"], id, mark)
    assert find_processes(id) == []


ATTACKS = ("calls", "privileges", "network", "limits", "time", "keeper", "hostile_keeper", "shared")
ELSEWHERE = (
    "test_the_ids_of_a_box_are_its_own_and_mean_nobody_outside",
    "test_a_user_who_kills_everybody_ends_only_themselves and root",
)
"""The caller is somebody outside, and root of a box can stop the monitor that stands for a cgroup: the next test."""


@pytest.mark.promise("no_privileges", "network_none", "syscalls", "user_root", "timeout", "output_bytes")
@pytest.mark.timeout(600)
def test_the_attacks_fail_for_an_ordinary_user(prepared: Ordinary) -> None:
    files = [f"tests/security/test_{name}.py" for name in ATTACKS]
    options = ["-q", "-p", "no:cacheprovider", "-k", " and ".join(f"not ({name})" for name in ELSEWHERE), *files]
    status, said = prepared.run("-m", "pytest", *options, TEST_ENGINES="embedded:crun")
    assert status == 0, said[-6000:]


def test_root_of_a_box_that_stops_the_monitor_ends_the_box_with_it(prepared: Ordinary) -> None:
    code = """
box = Sandbox.create(user="root")
try: box.commands.run("kill -STOP -1; sleep 60", timeout=0.5)
except SandboxError as error: print(json.dumps([error.code, box.is_running()]))
"""
    assert prepared.ask(code) == ["protocol_error", False]
