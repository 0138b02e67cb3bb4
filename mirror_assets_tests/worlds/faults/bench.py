"""The loopback OneLake as a bench: a zone that can be put back, and a store whose waiting costs no time."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_assets.landing.names import PROCESSED, landing_number
from mirror_assets.zones import Content
from mirror_assets.zones.onelake.clients import unquoted
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.worlds.eyes import Eyes
from mirror_assets_tests.worlds.onelake import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.account import LANDING_ZONE, File, Node
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.memory import MemoryStore
from mirror_assets_tests.zones.onelake.wire import Clock

_PREFIX = f"{LANDING_ZONE}/"


class Bench:
    """One item of the server, the product's store on it through the real SDK, and eyes on its table folder."""

    def __init__(self, server: LoopbackOneLake) -> None:
        self.server, self.item = server, server.new_item()
        self.store: OneLakeStore = loopback_store(server, self.item, Clock().policy(limit_seconds=2.0))
        self.eyes = Eyes()
        self._saved: Mapping[str, Node] = self.item.saved()

    def save(self) -> None:
        """Take the zone as it is now for the beginning of each trial."""
        self._saved = self.item.saved()

    def begin(self) -> None:
        """Put the zone back, without faults, an empty log, and with eyes on it after every request."""
        self.server.reset()
        self.item.restore(self._saved)
        self.eyes = Eyes()
        self.look()
        self.server.storage.watch = self.look

    def look(self) -> None:
        self.eyes.see(self.item.landing_files(TABLE.file_folders))

    def consume(self) -> None:
        """What the service does with files that it has applied: all but the last move away."""
        for name in [name for name in self.item.names(TABLE.folder) if landing_number(name)][:-1]:
            self.item.move(f"{TABLE.folder}/{name}", f"{TABLE.folder}/{PROCESSED}/{name}")

    def memory(self) -> MemoryStore:
        """The zone as it is now in memory, with the same ETags, where publishing costs no requests."""
        files = {path: node for path, node in self.item.saved().items() if isinstance(node, File)}
        return MemoryStore.holding(
            {p.removeprefix(_PREFIX): Content(f.data, unquoted(f.etag)) for p, f in files.items()}
        )
