"""A registry of npm packages on this machine, for the machine's own npm."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.test_images_members import member

if TYPE_CHECKING:
    from collections.abc import Generator

NODE = b"#!/bin/sh\necho v22.5.0\n"


def pack(*members: tarfile.TarInfo, content: bytes = NODE) -> bytes:
    """A package with these members; all of their files have that content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for each in members:
            each.size = len(content) if each.isreg() else 0
            tar.addfile(each, io.BytesIO(content) if each.isreg() else None)
    return packed.getvalue()


def node(*more: tarfile.TarInfo) -> bytes:
    """A package that looks like one of node, and what else is in it."""
    return pack(member("package/bin/node", mode=0o755), *more)


@dataclass
class Registry:
    """Packages by name and version."""

    packages: dict[str, dict[str, bytes]] = field(default_factory=dict[str, dict[str, bytes]])
    sent: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """What is sent in place of a package, by its version."""
    asked: Event = field(default_factory=Event)
    """A package was asked for."""
    go_on: Event = field(default_factory=Event)
    """Until it is set no package is sent."""
    address: str = ""

    def describe(self, name: str) -> bytes:
        """What a registry tells of a package."""
        versions = {
            version: {
                "name": name,
                "version": version,
                "dist": {
                    "tarball": f"{self.address}/{name}/-/{name}-{version}.tgz",
                    "integrity": f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}",
                },
            }
            for version, content in self.packages[name].items()
        }
        return json.dumps({"name": name, "dist-tags": {"latest": max(versions)}, "versions": versions}).encode()

    def content(self, file: str) -> bytes:
        """A package by the name of its file."""
        self.asked.set()
        assert self.go_on.wait(60)
        name, _, version = file.removesuffix(".tgz").rpartition("-")
        return self.sent.get(version) or self.packages[name][version]


@contextmanager
def serve(registry: Registry) -> Generator[dict[str, str]]:
    """The variables with which npm asks it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, _, file = self.path.lstrip("/").partition("/-/")
            if name not in registry.packages:
                self.send_error(404)
                return
            body = registry.content(file) if file else registry.describe(name)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield variables(registry.address)
        finally:
            registry.go_on.set()
            server.shutdown()
            thread.join()


def variables(address: str) -> dict[str, str]:
    """For an npm that gives up at once, and remembers nothing."""
    return {
        "npm_config_registry": address,
        "npm_config_fetch_retries": "0",
        "npm_config_prefer_online": "true",
        "npm_config_noproxy": "127.0.0.1",
    }
