"""The real keeper: in a PID namespace of its own, as a plain process, and on the host."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.keeper.wire import Client, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager

ROOT = Path(__file__).parents[2]
NUMBERS = itertools.count()
PR_SET_PDEATHSIG = 1


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static binary as it ships, or one with sanitizers where CLOCHE_SANITIZE is set."""
    program = tmp_path_factory.mktemp("keeper") / "keeper"
    sources = [str(path) for path in (ROOT / "keeper").glob("*.c") if not path.stem.endswith("_test")]
    flags = ["-O2", "-static"]
    if os.environ.get("CLOCHE_SANITIZE"):
        flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", "-std=c11", *flags, *warnings, "-o", str(program), *sources], check=True)
    return program


def cgroup_root() -> Path:
    """Where cgroup v2 is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        if right.startswith("cgroup2 "):
            return Path(left.split()[4])
    raise AssertionError("no cgroup2 is mounted; the keeper's tests need one")


def is_empty(cgroup: Path) -> bool:
    return "populated 0" in (cgroup / "cgroup.events").read_text()


@contextmanager
def cgroup_folder() -> Generator[Path, None, None]:
    """An empty folder of cgroup v2, removed with all that is in it."""
    folder = cgroup_root() / f"cloche-test-{os.getpid()}-{next(NUMBERS)}"
    folder.mkdir()
    try:
        yield folder
    finally:
        (folder / "cgroup.kill").write_text("1")
        for child in [path for path in folder.iterdir() if path.is_dir()]:
            wait_until(functools.partial(is_empty, child), f"{child} is empty")
            child.rmdir()
        folder.rmdir()


def follow_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Keeper:
    """A running keeper and a client of it."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path, runs: Path) -> None:
        self.process = process
        self.path = path
        self.runs = runs

    def client(self, uid: int = 0, gid: int = 0) -> Client:
        return Client(self.path, uid, gid)

    @property
    def pid(self) -> int:
        """Of the keeper itself, where unshare stands before it."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        is_unshare = Path(f"/proc/{self.process.pid}/comm").read_text() == "unshare\n"
        return int(children[0]) if is_unshare else self.process.pid

    def memory_kib(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@contextmanager
def start(binary: Path, *options: str, namespace: bool = False, cgroup: bool = False) -> Generator[Keeper, None, None]:
    """A keeper with these options, that listens on a socket which it inherits."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "keeper.sock"
        listener.bind(str(path))
        listener.listen(512)
        os.chmod(folder, 0o711)
        command = ["unshare", "--pid", "--mount-proc", "--kill-child", "--fork"] if namespace else []
        command += [str(binary), "--listen-fd", str(listener.fileno()), *options]
        descriptors = [listener.fileno()]
        with cgroup_folder() if cgroup else tempfile.TemporaryDirectory() as runs:
            if cgroup:
                descriptors.append(os.open(runs, os.O_RDONLY | os.O_DIRECTORY))
                command += ["--runs-fd", str(descriptors[-1])]
            process = subprocess.Popen(command, pass_fds=descriptors, preexec_fn=follow_parent)
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            try:
                yield Keeper(process, path, Path(runs))
            finally:
                process.kill()
                process.wait()


MODES: dict[str, Callable[[Path], AbstractContextManager[Keeper]]] = {
    "cgroup": lambda binary: start(binary, namespace=True, cgroup=True),
    "monitor": lambda binary: start(binary, namespace=True),
    "host": lambda binary: start(binary, "--host"),
}


@pytest.fixture(params=MODES)
def keeper(request: pytest.FixtureRequest, binary: Path) -> Iterator[Keeper]:
    """In each of the ways in which it holds a run's processes together."""
    with MODES[request.param](binary) as keeper:
        yield keeper
        assert keeper.process.poll() is None, "the keeper has ended"


@pytest.fixture
def boxed(binary: Path) -> Iterator[Keeper]:
    """PID 1 of a PID namespace, with cgroups."""
    with start(binary, "--egress-port", "47171", namespace=True, cgroup=True) as keeper:
        yield keeper
        assert keeper.process.poll() is None, "the keeper has ended"


@pytest.fixture
def client(keeper: Keeper) -> Client:
    return keeper.client(os.geteuid(), os.getegid())


@pytest.fixture
def user(boxed: Keeper) -> Client:
    """An ordinary user in a box."""
    return boxed.client(1000, 1000)


@pytest.fixture
def folder() -> Iterator[bytes]:
    """A folder that belongs to the ordinary user, below one that everyone may pass."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        inner = os.path.join(path, "inner")
        os.mkdir(inner)
        os.chown(inner, 1000, 1000)
        yield os.fsencode(inner)
