"""`cloche cp`."""

from __future__ import annotations

import os
import posixpath
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cloche.cli.arguments import number_from
from cloche.cli.find import find_sandbox
from cloche.cli.outlet import PIECE, Outlet, add_output_options
from cloche.client.targets import own_descriptor
from cloche.errors import InvalidRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Iterable, Iterator

    from cloche.client._sync.sandbox import Sandbox

EXAMPLE: Final = "cloche cp results tests:/tmp/results"
MOST: Final = 1 << 62
WHERE: Final = "a path here, ID:path in a sandbox, or - for standard input or output"


class Place(NamedTuple):
    """One end of a copy."""

    box: Sandbox | None
    """None: this machine."""
    path: str

    @property
    def is_stream(self) -> bool:
        """True for our standard input or output."""
        return self.box is None and self.path == "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("source", metavar="SRC", help=f"what to copy, a file or a folder: {WHERE}")
    parser.add_argument("target", metavar="DST", help=f"where to: {WHERE}; in a folder that is there, by its own name")
    parser.add_argument(
        "--unpack", action="store_true", help="SRC is a tar archive: put what is in it into the folder DST of a sandbox"
    )
    parser.add_argument(
        "--max-bytes",
        type=number_from(0, MOST),
        default=4 << 30,
        metavar="BYTES",
        help="refuse to fetch more than that into a file or folder here (default: 4 GiB)",
    )
    parser.add_argument(
        "--max-entries",
        type=number_from(0, MOST),
        default=200_000,
        metavar="N",
        help="refuse to fetch a folder with more files and folders in it (default: 200000)",
    )
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Copies; a folder goes with all that is in it, and as a tar archive to a name with .tar or to `-`."""
    source, target = _parse(args.source), _parse(args.target)
    if source.box is None and target.box is None:
        raise InvalidRequest(f"neither {args.source!r} nor {args.target!r} is in a sandbox; expected ID:path for one")
    if args.unpack and (source.box or not target.box):
        raise InvalidRequest(
            "--unpack needs an archive here and a folder in a sandbox: cloche cp --unpack FILE ID:path"
        )
    size = _copy(source, target, args)
    if args.json:
        from cloche.cli.tables import print_json

        print_json({"bytes": size})
    return 0


def _parse(word: str) -> Place:
    """`ID:path`, where it does not begin like a path of this machine."""
    if not word:
        raise InvalidRequest(f"one of the two is ''; expected {WHERE}")
    id, is_inside, path = word.partition(":")
    if not is_inside or word.startswith(("/", ".")):
        return Place(None, word)
    return Place(find_sandbox(id), path or ".")


def _copy(source: Place, target: Place, args: argparse.Namespace) -> int:
    if source.box and target.box:
        return _copy_between(source.box, source.path, target.box, target.path)
    if target.box:
        return _put(source, target.box, target.path, unpack=args.unpack)
    assert source.box, "one of the two is in a sandbox"
    if target.is_stream or own_descriptor(target.path) == 1:
        return _show(source.box, source.path, raw=args.raw)
    if not args.raw and _is_terminal(target.path):
        raise InvalidRequest(f"{target.path!r} is a terminal; - shows it there filtered, --raw as it is")
    path = _inside_own_folder(source.path, target.path)
    return source.box.files.download(source.path, path, max_bytes=args.max_bytes, max_entries=args.max_entries)


def _is_terminal(path: str) -> bool:
    try:
        # Nothing else is opened: the reader of a pipe would take the closing for its end.
        if not stat.S_ISCHR(os.stat(path).st_mode):
            return False
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def _put(source: Place, box: Sandbox, path: str, *, unpack: bool) -> int:
    if not source.is_stream:
        target = path if unpack else _inside_folder(box, source.path, path)
        return box.files.upload(source.path, target, unpack=unpack)
    if not unpack:
        return box.files.write(path, _read_input())
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        shutil.copyfileobj(sys.stdin.buffer, archive)
        archive.flush()
        return box.files.upload(archive.name, path, unpack=True)


def _show(box: Sandbox, path: str, *, raw: bool) -> int:
    """A file's octets on standard output, or a folder as an archive."""
    if not _is_folder(box, path):
        return _print(box.files.read(path, "stream"), raw=raw)
    if sys.stdout.isatty():
        raise InvalidRequest(
            f"{path!r} is a folder, which comes as a tar archive; a terminal can't show it: use > FILE"
        )
    with _fetched(box, path) as archive, archive.open("rb") as file:
        return _print(iter(lambda: file.read(PIECE), b""), raw=True)


def _is_folder(box: Sandbox, path: str) -> bool:
    """False for a file; what is neither has nothing to copy."""
    kind = box.files.stat(path).kind
    if kind not in ("file", "folder"):
        raise InvalidRequest(f"{path!r} is a {kind}; a file or a folder was expected")
    return kind == "folder"


def _print(pieces: Iterable[bytes], *, raw: bool) -> int:
    outlet, size = Outlet("stdout", raw=raw), 0
    for piece in pieces:
        outlet.write(piece)
        size += len(piece)
    outlet.finish()
    return size


def _copy_between(source: Sandbox, path: str, target: Sandbox, target_path: str) -> int:
    full = _inside_folder(target, path, target_path)
    if not _is_folder(source, path):
        return target.files.write(full, source.files.read(path, "stream"))
    with _fetched(source, path) as archive:
        return target.files.upload(archive, full, unpack=True)


@contextmanager
def _fetched(box: Sandbox, path: str) -> Generator[Path]:
    """A folder of a sandbox as an archive here, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="cloche-") as folder:
        archive = Path(folder, "folder.tar")
        box.files.download(path, archive)
        yield archive


def _inside_folder(box: Sandbox, source: str, path: str) -> str:
    """Where a copy goes: into a folder that is there by the source's own name, else to the path itself."""
    if path.endswith("/") or (box.files.exists(path) and box.files.stat(path).kind == "folder"):
        return posixpath.join(path, _name_of(source))
    return path


def _inside_own_folder(source: str, path: str) -> str:
    if path.endswith("/") or os.path.isdir(path):
        return os.path.join(path, _name_of(source))
    return path


def _name_of(path: str) -> str:
    name = posixpath.basename(posixpath.normpath(path))
    if name in ("", ".", "..", "/"):
        raise InvalidRequest(f"{path!r} has no name that a copy could have; name the whole target")
    return name


def _read_input() -> Iterator[bytes]:
    while piece := sys.stdin.buffer.read(PIECE):
        yield piece
