"""A `newc` cpio archive, the form of an initramfs, written without root: owners, modes and device
nodes are only numbers in it.

Source: Documentation/driver-api/early-userspace/buffer-format.rst of Linux. The same entries give
the same bytes: entries are sorted, times are 0, inode numbers count up. An initramfs may be several
archives in a row, each padded to 512 bytes; a later one adds to the earlier ones. So `archive` pads
its result.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass

BLOCK = 512
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class CpioEntry:
    """The content at a path: a file's or a link's bytes, or a device's numbers."""

    mode: int
    """Kind and permissions, as in stat(2)."""
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def file(data: bytes, executable: bool = False) -> CpioEntry:
    """A regular file."""
    return CpioEntry(stat.S_IFREG | (0o755 if executable else 0o644), data)


def symlink(target: str) -> CpioEntry:
    """A symbolic link."""
    return CpioEntry(stat.S_IFLNK | 0o777, target.encode())


def character_device(major: int, minor: int) -> CpioEntry:
    """A character device that only root may use."""
    return CpioEntry(stat.S_IFCHR | 0o600, device=(major, minor))


def archive(entries: Mapping[str, CpioEntry], directories: tuple[str, ...] = ()) -> bytes:
    """The archive of these entries, by path from the root without a leading `/`. Parent directories
    are added."""
    all_entries = {
        path: CpioEntry(stat.S_IFDIR | 0o755)
        for name in (*entries, *directories)
        for path in _above(name)
    }
    all_entries |= {path: CpioEntry(stat.S_IFDIR | 0o755) for path in directories}
    if clash := sorted(path for path in all_entries if path in entries):
        raise ValueError(f"{clash[0]} is a file and a directory of one archive")
    all_entries |= entries
    # Sorting puts a directory before its content.
    pieces = [
        _record(number, path, all_entries[path])
        for number, path in enumerate(sorted(all_entries), start=1)
    ]
    pieces.append(_record(0, _TRAILER, CpioEntry(0)))
    return _padded(b"".join(pieces), BLOCK)


def _above(path: str) -> list[str]:
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"{path!r} is not a path from the root, without dots")
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _record(inode: int, path: str, entry: CpioEntry) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (
        *(inode, entry.mode, 0, 0, links, 0, len(entry.data)),
        *(0, 0, *entry.device, len(name), 0),
    )
    header = b"070701" + b"".join(b"%08X" % number for number in fields)
    return _padded(header + name, 4) + _padded(entry.data, 4)


def _padded(data: bytes, to: int) -> bytes:
    return data + b"\0" * (-len(data) % to)
