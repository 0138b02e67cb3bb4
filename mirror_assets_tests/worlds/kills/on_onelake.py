"""A landing zone on the loopback OneLake: the server kills whoever sends a certain request, or lets it arrive late."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mirror_assets.zones import LocalStore
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.kills.place import Arrival, Place
from mirror_assets_tests.worlds.kills.points import Point, Side, Write
from mirror_assets_tests.worlds.kills.process import Run
from mirror_assets_tests.worlds.onelake import (
    Action,
    Call,
    Drop,
    Fault,
    Hold,
    LoopbackItem,
    LoopbackOneLake,
    Moment,
    Operation,
    Request,
)
from mirror_assets_tests.worlds.onelake.account import LANDING_ZONE
from mirror_assets_tests.worlds.onelake.stores import loopback_store

_OPERATIONS = {Write.PUT: Operation.PUT_BLOB, Write.RENAME: Operation.RENAME, Write.DELETE: Operation.DELETE}
_ALL = 1 << 30
_BELOW = f"{LANDING_ZONE}/"


@dataclass
class OnOneLake(Place):
    """See Place."""

    server: LoopbackOneLake
    item: LoopbackItem
    staging: Staging
    _sent: dict[str, list[str]] = field(default_factory=dict)
    _runs: dict[str, Run] = field(default_factory=dict)
    _released: int = 0

    sides = (Side.BEFORE, Side.AFTER, Side.LATE)

    @classmethod
    @contextmanager
    def opened(cls, root: Path, server: LoopbackOneLake, staging: Staging) -> Iterator[OnOneLake]:
        """A new item, watched as long as the block lasts."""
        item = server.new_item()
        place = cls(root, server, item, staging)
        zone = f"{{url: '{item.url}', credential: client_secret, staging: {staging.value}, ca_bundle: '{server.ca}'}}"
        name = {"spark.hadoop.fs.azure.user.agent.prefix": "${AZURE_HTTP_USER_AGENT}"}
        place.configure(f"{{onelake: {zone}}}", name)
        server.storage.watch = lambda: place.eyes.see(item.landing_files(TABLE.file_folders))
        try:
            yield place
        finally:
            server.reset()

    @property
    def store(self) -> OneLakeStore:
        return loopback_store(self.server, self.item)

    def start(self, name: str, at: Point | None = None) -> Run:
        """Start a run of the console script; its requests carry its name."""
        self._sent[name] = []
        self.server.faults.add(*self._faults(name, at))
        # What a JVM has to be told so that it trusts the server.
        trust = self.server.spark_settings()["spark.driver.extraJavaOptions"]
        ours = self.environment()
        named = {"AZURE_HTTP_USER_AGENT": name, "JAVA_OPTIONS": f"{ours['JAVA_OPTIONS']} {trust}"}
        script = str(Path(sys.executable).with_name("mirror-assets"))
        command = [script, "run", "--config", str(self.config_file)]
        self._runs[name] = Run(name, command, {**ours, **self.server.environment(), **named})
        return self._runs[name]

    def sent(self, name: str) -> Sequence[str]:
        return self._sent[name]

    def attempts(self) -> frozenset[str]:
        """Spark's are on disk before they are uploaded."""
        names = frozenset(name.rstrip("/") for name in self.item.names(TABLE.scratch))
        if self.staging is Staging.DIRECT:
            return names
        local_staging = LocalStore(self.root / "staging" / self.item.guid)
        return names | {info.name for info in local_staging.list(TABLE.scratch)}

    def late(self) -> Sequence[Arrival]:
        held = self.server.faults.held[self._released :]
        self._released += len(held)
        return [request.release for request in held]

    def settle(self) -> None:
        self.server.faults.end()

    def _faults(self, name: str, point: Point | None) -> Iterator[Fault]:
        """Whatever the run asks is noted; at the point it is killed, and its request may be lost or held."""

        def mine(request: Request) -> bool:
            return name in request.headers.get("User-Agent", "")

        def here(request: Request) -> bool:
            return mine(request) and self._leaves(request, point.left if point else None)

        def note(request: Request) -> None:
            self._sent[name].append(f"{request.operation.value} {request.path.removeprefix(_BELOW)}")

        yield Fault(Call(note, Moment.BEFORE), path=f"{_BELOW}*", where=mine, times=_ALL)
        if point:
            for action in self._actions(name, point.side):
                yield Fault(action, _OPERATIONS.get(point.write), _BELOW + point.path, here, point.nth)

    def _actions(self, name: str, side: Side) -> Iterator[Action]:
        yield Call(lambda _: self._runs[name].kill(), Moment.AFTER if side is Side.AFTER else Moment.BEFORE)
        if side is Side.BEFORE:
            yield Drop(Moment.BEFORE)
        if side is Side.LATE:
            yield Hold()

    def _leaves(self, request: Request, left: int | None) -> bool:
        """Whether a rename leaves so many parts beside the one that it takes."""
        if left is None:
            return True
        folder, _, part = request.headers["x-ms-rename-source"].partition(_BELOW)[2].rpartition("/")
        there = [name for name in self.item.names(folder) if name.startswith("part-")]
        return part in there and len(there) - 1 == left
