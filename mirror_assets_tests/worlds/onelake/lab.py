"""The lab's table, mirrored into a landing zone on the loopback OneLake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_assets.zones import Store
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.lakes.lake import StoreLab
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store


@dataclass(frozen=True)
class OneLakeLab(StoreLab):
    """A lab's source, and an item of the server; the lab's own landing zone is not used.

    The environment has to have the server's identity.
    """

    lab: Lab
    server: LoopbackOneLake
    item: LoopbackItem

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
        return cls(lab.spark, lab.root, lab, server, item, zone=loopback_store(server, item))

    @property
    def store(self) -> Store:
        assert self.zone
        return self.zone

    @property
    def folder(self) -> list[str]:
        return [name for name in self.item.names(TABLE.folder) if not name.startswith("_")]

    @property
    def staged(self) -> list[Path]:
        """What is left in the folder that Spark and the publisher share."""
        return [path for path in (self.root / "staging").rglob("*") if path.is_file()]
