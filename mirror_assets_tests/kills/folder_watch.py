"""Watches a table folder on this machine from before it exists."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from mirror_assets.landing.names import TableName, landing_number
from mirror_assets_tests.kills.eyes import Eyes
from mirror_assets_tests.kills.inotify import Event, Happened, Inotify

_TICK = 0.2


class FolderWatch:
    """Tells the eyes of every landing file that appears in the table's folder of the zone, inside `with`."""

    def __init__(self, zone: Path, table: TableName, eyes: Eyes) -> None:
        self._zone, self.folder, self.eyes = zone, zone / table.folder, eyes
        self._inotify, self._done = Inotify(), threading.Event()
        self._found: dict[Path, int | None] = {}
        self._watched: set[Path] = set()
        self._thread = threading.Thread(target=self._run, name="folder watch", daemon=True)

    @property
    def is_there(self) -> bool:
        """Whether the table folder exists and is watched."""
        return self.folder in self._watched

    def __enter__(self) -> FolderWatch:
        self._watch(self._zone)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._inotify.close()

    def _run(self) -> None:
        while not self._done.is_set():
            events = list(self._inotify.events(_TICK))
            for event in events:
                self._met(event)
            if not events:
                self._found.clear()

    def _watch(self, folder: Path) -> None:
        """Watch a folder of the way to the table folder; what is in it already has no event of its own."""
        if folder in self._watched:
            return
        self._watched.add(folder)
        self._inotify.add(folder)
        for path in sorted(folder.iterdir()):
            self._found[path] = _inode(path)
            self._arrived(path)

    def _met(self, event: Event) -> None:
        if event.what & Happened.LOST_COUNT:
            self.eyes.missed("more happened than inotify could tell")
        elif event.path in self._found and self._found.pop(event.path) in (_inode(event.path), None):
            pass  # it came between the watch and the look into the folder, which has told of it
        elif event.what & Happened.MOVED_IN or not self._number(event.path):
            self._arrived(event.path)
        else:
            self.eyes.changed(self._number(event.path), "written")

    def _arrived(self, path: Path) -> None:
        if path == self.folder or path in self.folder.parents:
            self._watch(path)
        elif number := self._number(path):
            self.eyes.appeared(number, _content(path))

    def _number(self, path: Path) -> int:
        """The landing file's number, or 0 for any other name."""
        return (landing_number(path.name) or 0) if path.parent == self.folder else 0


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
