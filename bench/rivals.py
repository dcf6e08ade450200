"""Docker and Podman, started for the comparison with data folders of their own, where they are installed."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.floor import tiny_program

if TYPE_CHECKING:
    from collections.abc import Generator

IMAGE = "cloche-bench"
# One program that prints `ok` and ends: no image is smaller.
SOURCE = '#include <stdio.h>\nint main(void) { return puts("ok") < 0; }\n'


@dataclass
class Rival:
    """Makes a container, runs the program, removes the container."""

    name: str
    command: list[str]

    def __call__(self) -> None:
        done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        if done.stdout != "ok\n":
            raise RuntimeError(f"{self.name}: {done.stderr.strip()}")


@contextmanager
def start_docker() -> Generator[Rival | None]:
    """Through a daemon of its own."""
    if shutil.which("dockerd") is None or shutil.which("docker") is None:
        print("  Docker is not installed (apt-get install docker.io): no comparison")
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="cloche-bench-docker-") as folder:
        socket = f"unix://{folder}/docker.sock"
        daemon = subprocess.Popen(
            f"dockerd -H {socket} --data-root {folder}/data --exec-root {folder}/exec --pidfile {folder}/pid "
            "--bridge none --iptables=false".split(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        client = ["docker", "-H", socket]
        try:
            if not _wait_until_ready([*client, "info"]):
                print("  Docker does not start here: no comparison")
                yield None
                return
            _import_image(client)
            yield Rival("docker run", [*client, "run", "--rm", "--network", "none", IMAGE, "/ok"])
        finally:
            daemon.terminate()
            daemon.wait(30)


@contextmanager
def start_podman() -> Generator[Rival | None]:
    """It has no daemon to start."""
    if shutil.which("podman") is None:
        print("  Podman is not installed (apt-get install podman): no comparison")
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="cloche-bench-podman-") as folder:
        client = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--runtime", "runc"]
        client += ["--cgroup-manager", "cgroupfs"]
        _import_image(client)
        options = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000", "--network", "none"]
        yield Rival("podman run", [*client, "run", "--rm", *options, IMAGE, "/ok"])


def _wait_until_ready(command: list[str]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return True
        time.sleep(0.2)
    return False


def _import_image(client: list[str]) -> None:
    folder = tiny_program().parent
    (folder / "ok.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-static", "-o", folder / "ok", folder / "ok.c"], check=True)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder / "ok", "ok")
    done = subprocess.run([*client, "import", "-", IMAGE], input=archive.getvalue(), capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{client[0]} import: {done.stderr.decode(errors='replace').strip()}")
