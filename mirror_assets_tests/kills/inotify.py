"""Linux's inotify: what happens to the names in folders, in order, and without a gap."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 16


class Happened(IntFlag):
    """What can happen to a name; only these are asked for, but for the last, which the kernel tells unasked."""

    MODIFIED = 0x2
    MOVED_IN = 0x80
    CREATED = 0x100
    LOST_COUNT = 0x4000


@dataclass(frozen=True)
class Event:
    """One thing that happened to a name in a folder."""

    path: Path
    what: Happened


class Inotify:
    """Watches folders, but not those in them."""

    def __init__(self) -> None:
        self._descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._folders: dict[int, Path] = {}

    def add(self, folder: Path) -> None:
        """Watch the folder from now on."""
        requested = Happened.MODIFIED | Happened.MOVED_IN | Happened.CREATED
        self._folders[_checked(_libc.inotify_add_watch(self._descriptor, os.fsencode(folder), requested))] = folder

    def events(self, seconds: float) -> Iterator[Event]:
        """What has happened; waits for it up to this time."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        data, at = os.read(self._descriptor, _BUFFER) if ready else b"", 0
        while at < len(data):
            watch, mask, _, size = _HEAD.unpack_from(data, at)
            name = os.fsdecode(data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0"))
            at += _HEAD.size + size
            yield from self._event(watch, mask, name)

    def close(self) -> None:
        """Watch nothing any more."""
        os.close(self._descriptor)

    def _event(self, watch: int, mask: int, name: str) -> Iterator[Event]:
        known = Happened.MODIFIED | Happened.MOVED_IN | Happened.CREATED | Happened.LOST_COUNT
        if mask & known:
            yield Event(self._folders.get(watch, Path()) / name, Happened(mask & known))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
