"""A mirrored database on the loopback OneLake whose landing files the stand-in applies, in a thread, as Fabric does."""

from __future__ import annotations

import shutil
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets_tests.worlds.fabric.databases import Json, LoopbackDatabase, reported_status
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store


class ReplicatingItem(AbstractContextManager["ReplicatingItem"]):
    """The stand-in writes the mirrored tables into a folder, and each iteration ends with a copy into the item."""

    def __init__(self, server: LoopbackOneLake, item: LoopbackItem, database: LoopbackDatabase, folder: Path) -> None:
        self._item, self._database, self._folder = item, database, folder
        self._replicator = LocalReplicator(loopback_store(server, item), folder)
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name="Fabric's replicator")
        database.tables, database.replay = self._tables, self._replay

    def __enter__(self) -> ReplicatingItem:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.02):
            if self._database.state == "Running":
                with self._lock:
                    self._replicator.poll()
                    self._publish()

    def _publish(self) -> None:
        """Copy the tables, without the stand-in's own folders."""
        found = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        self._item.put_tables({name: path.read_bytes() for name, path in found.items() if not name.startswith("_")})

    def _tables(self) -> list[Json]:
        return [reported_status(status) for status in self._replicator.status()]

    def _replay(self) -> None:
        with self._lock:
            shutil.rmtree(self._folder, ignore_errors=True)
