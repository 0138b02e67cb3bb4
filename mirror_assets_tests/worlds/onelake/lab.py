"""The lab's table, mirrored into a landing zone on the loopback OneLake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.source.log import DeltaLog
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store


@dataclass(frozen=True)
class OneLakeLab:
    """A lab's source, and an item of the server; the lab's own landing zone is not used."""

    lab: Lab
    server: LoopbackOneLake
    item: LoopbackItem
    store: OneLakeStore

    @classmethod
    def on(cls, lab: Lab, server: LoopbackOneLake, staging: Staging) -> OneLakeLab:
        """A new item for the lab's table, and a mirror.yaml that names it."""
        item = server.new_item()
        place = f'{{url: "{item.url}", credential: client_secret, staging: {staging.value}, ca_bundle: "{server.ca}"}}'
        lab.config_file.write_text(
            f"landing_zone: {{onelake: {place}}}\nmirror: {{path: ./mirror}}\nautomation: {{mode: batch}}\n"
            f"defaults:\n  slices: {{max_commits: 2}}\n"
            f"tables:\n  {TABLE}:\n    source: ./lake/orders\n    keys: [id]\n"
        )
        return cls(lab, server, item, loopback_store(server, item))

    @property
    def config(self) -> Config:
        """Its settings, read anew."""
        return load_config(self.lab.config_file)

    @property
    def replicator(self) -> LocalReplicator:
        """The stand-in."""
        return LocalReplicator(self.store, self.lab.root / "mirror")

    @property
    def context(self) -> TableContext:
        """The table's work."""
        config, log = self.config, DeltaLog(self.lab.uri)
        local_staging = config.zone.local_staging()
        return TableContext(config, config.table(TABLE), log, self.store, lambda: self.lab.spark, local_staging)

    @property
    def folder(self) -> list[str]:
        """What is visible in the table folder."""
        return [name for name in self.item.names(TABLE.folder) if not name.startswith("_")]

    @property
    def staged(self) -> list[Path]:
        """What is left in the folder that Spark and the publisher share."""
        return [path for path in (self.lab.root / "staging").rglob("*") if path.is_file()]

    def mirror(self, report: Callable[[str], None] = lambda _: None) -> list[ProcessedSlice]:
        """Mirror until nothing is left."""
        return list(landed_slices(self.context, self.replicator, report))
