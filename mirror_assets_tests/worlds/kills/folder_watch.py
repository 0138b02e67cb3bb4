"""Watches a table folder on this machine with inotify: all that happens to its names, in order, without a gap."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from pathlib import Path

from mirror_assets.landing.names import landing_number
from mirror_assets_tests.worlds.eyes import Eyes

_TICK = 0.2
_libc = ctypes.CDLL(None, use_errno=True)
_HEAD, _BUFFER = struct.Struct("iIII"), 1 << 16
# The kernel reports the last one unasked.
_MODIFIED, _MOVED_IN, _CREATED, _LOST_COUNT = 0x2, 0x80, 0x100, 0x4000


class FolderWatch:
    """Reports every landing file that appears in the folder, or is written there, to the eyes, inside `with`."""

    def __init__(self, folder: Path, eyes: Eyes) -> None:
        self.folder, self.eyes = folder, eyes
        self._descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        _checked(_libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MODIFIED | _MOVED_IN | _CREATED))
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="folder watch", daemon=True)

    def __enter__(self) -> FolderWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        os.close(self._descriptor)

    def _run(self) -> None:
        while not self._done.is_set():
            ready, _, _ = select.select([self._descriptor], [], [], _TICK)
            data, at = os.read(self._descriptor, _BUFFER) if ready else b"", 0
            while at < len(data):
                _, mask, _, size = _HEAD.unpack_from(data, at)
                at += _HEAD.size + size
                self._happened(mask, os.fsdecode(data[at - size : at].rstrip(b"\0")))

    def _happened(self, mask: int, name: str) -> None:
        number = landing_number(name)
        if mask & _LOST_COUNT:
            self.eyes.missed("more happened than inotify could report")
        elif number and mask & _MOVED_IN:
            try:
                data = (self.folder / name).read_bytes()
            except FileNotFoundError:
                data = None
            self.eyes.appeared(number, data)
        elif number:
            self.eyes.changed(number, "written")


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
