"""What may be unpacked from an archive of a root file system: decided by its members' headers alone."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["folder", "file", "link", "hardlink"]
KINDS: dict[bytes, Kind] = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.CONTTYPE: "file",
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "hardlink",
}
REFUSED = {
    tarfile.CHRTYPE: "a device; leave /dev empty (tar --exclude='./dev/*')",
    tarfile.BLKTYPE: "a device; leave /dev empty (tar --exclude='./dev/*')",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file; make the archive without --sparse",
}
HIGHEST_ID = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most that an archive may hold."""

    entries: int = 500_000
    total_bytes: int = 32 << 30
    name_bytes: int = 255
    path_bytes: int = 4000
    depth: int = 64
    is_plain: bool = False
    """Folders and files alone, all of one owner, for everyone to read: what a package holds."""


PACKAGE = Caps(entries=50_000, total_bytes=1 << 30, is_plain=True)


class Refused(Exception):
    """The archive is not unpacked; the message names the member."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to make; `mode` without setuid and setgid."""

    kind: Kind
    path: str
    mode: int
    uid: int
    gid: int
    mtime: int
    size: int = 0
    target: str = ""


@dataclass(slots=True)
class Members:
    """Follows an archive from member to member; what came before decides what may come next."""

    caps: Caps = field(default_factory=Caps)
    entries: int = 0
    total_bytes: int = 0
    seen: dict[str, Kind] = field(default_factory=dict[str, Kind])

    def decide(self, member: tarfile.TarInfo) -> Step | None:
        """What to make for `member`, None where nothing is; folders that it needs come before it.

        Raises: Refused.
        """
        self._count(member)
        path = self._path(member, member.name, "its name")
        kind = self._kind(member)
        if not path:
            if kind != "folder":
                raise Refused(f"{member.name!r} stands for the root of the archive and is no folder")
            return None
        self._refuse_clash(member, path, kind)
        target = self._target(member, kind)
        uid, gid, mode = self._rights(member, kind)
        self.seen[path] = kind
        return Step(
            kind=kind,
            path=path,
            mode=mode,
            uid=uid,
            gid=gid,
            mtime=min(max(int(member.mtime), 0), 1 << 33),
            size=member.size if kind == "file" else 0,
            target=target,
        )

    def _rights(self, member: tarfile.TarInfo, kind: Kind) -> tuple[int, int, int]:
        """Owner, group and mode."""
        if self.caps.is_plain:
            return 0, 0, 0o755 if kind == "folder" or member.mode & 0o111 else 0o644
        for owner in (member.uid, member.gid):
            if not 0 <= owner <= HIGHEST_ID:
                raise Refused(f"{member.name!r} belongs to id {owner}; a box has 0 to {HIGHEST_ID}")
        return member.uid, member.gid, member.mode & (0o1777 if kind == "folder" else 0o777)

    def _count(self, member: tarfile.TarInfo) -> None:
        self.entries += 1
        if self.entries > self.caps.entries:
            raise Refused(f"more than {self.caps.entries} entries, the last one {member.name!r}")
        if member.size < 0:
            raise Refused(f"{member.name!r} has the size {member.size}")
        self.total_bytes += member.size
        if self.total_bytes > self.caps.total_bytes:
            raise Refused(f"more than {self.caps.total_bytes} octets, with {member.name!r}")

    def _path(self, member: tarfile.TarInfo, name: str, what: str) -> str:
        shown = f"{name[:200]!r}"
        octets = name.encode("utf-8", "surrogateescape")
        if name.startswith("/"):
            raise Refused(f"{shown}: {what} is absolute; names in an archive are relative to its root")
        if "\0" in name:
            raise Refused(f"{shown}: {what} holds a NUL")
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise Refused(f"{shown}: {what} leads upwards with '..'")
        if len(octets) > self.caps.path_bytes or len(parts) > self.caps.depth:
            raise Refused(
                f"{shown}: {what} has {len(octets)} octets in {len(parts)} parts; "
                f"at most {self.caps.path_bytes} in {self.caps.depth}"
            )
        if any(len(part.encode("utf-8", "surrogateescape")) > self.caps.name_bytes for part in parts):
            raise Refused(f"{shown}: a part of {what} is longer than {self.caps.name_bytes} octets")
        return "/".join(parts)

    def _kind(self, member: tarfile.TarInfo) -> Kind:
        if member.sparse is not None or any(key.startswith("GNU.sparse") for key in member.pax_headers):
            raise Refused(f"{member.name!r} is {REFUSED[tarfile.GNUTYPE_SPARSE]}")
        kind = KINDS.get(member.type)
        if kind is None:
            raise Refused(f"{member.name!r} is {REFUSED.get(member.type, f'of the unknown type {member.type!r}')}")
        if self.caps.is_plain and kind not in ("folder", "file"):
            raise Refused(f"{member.name!r} is a link; a package holds folders and files")
        return kind

    def _refuse_clash(self, member: tarfile.TarInfo, path: str, kind: Kind) -> None:
        before = self.seen.get(path)
        if before is not None and not before == kind == "folder":
            raise Refused(f"{member.name!r} is in the archive twice, as a {before} and as a {kind}")
        parts = path.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if self.seen.setdefault(above, "folder") != "folder":
                raise Refused(f"{member.name!r} lies below {above!r}, which is a {self.seen[above]}")

    def _target(self, member: tarfile.TarInfo, kind: Kind) -> str:
        if kind == "hardlink":
            target = self._path(member, member.linkname, f"the target of {member.name[:200]!r}")
            if self.seen.get(target) not in ("file", "hardlink"):
                raise Refused(f"{member.name!r} is a hard link to {target!r}, which is no file before it")
            return target
        if kind != "link":
            return ""
        octets = member.linkname.encode("utf-8", "surrogateescape")
        if not octets or b"\0" in octets or len(octets) > self.caps.path_bytes:
            raise Refused(f"{member.name!r} is a link to {member.linkname[:200]!r}, which no link can hold")
        return member.linkname
