"""The landing zone as a Dagster resource: a folder of this machine, or OneLake."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from mirror_assets.config import LandingZoneConfig, OneLakeConfig
from mirror_assets.landing.metadata import ensure_partner_events
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.zone import open_exchange, open_zone
from mirror_assets.storage import LocalStore, Store
from mirror_assets.storage.onelake.address import ENDPOINT


class OneLake(dg.Config):
    """A mirrored database on OneLake; docs/configuration.md says what each setting means. None of them is a secret."""

    url: str | None = None
    workspace: str | None = None
    item: str | None = None
    endpoint: str = ENDPOINT
    credential: str = "default"
    staging: str = "upload"
    staging_path: str = "staging"
    api_version: str | None = None
    ca_bundle: str | None = None


class LandingZone(dg.ConfigurableResource[None]):
    """Where landing files go.

    .. code-block:: python

        LandingZone(path="/data/landing", partner="mirror_assets").store().list("")
        LandingZone(onelake=OneLake(url="https://onelake.dfs.fabric.microsoft.com/..../Files/LandingZone"))
    """

    path: str | None = Field(default=None, description="Folder of the landing zone on this machine.")
    onelake: OneLake | None = Field(default=None, description="The landing zone on OneLake.")
    partner: str = Field(default="mirror_assets", description="partnerName in _partnerEvents.json.")
    source_type: str = Field(default="Delta Lake", description="sourceType in _partnerEvents.json.")
    source_version: str = Field(default="", description="sourceVersion in _partnerEvents.json.")

    def open(self) -> Store:
        """The store under the landing zone; nothing is asked of it yet."""
        return open_zone(self._place())

    def store(self) -> Store:
        """The same with its partner file in place, for those who publish."""
        store = self.open()
        source = {"sourceType": self.source_type, "sourceVersion": self.source_version}
        drive(ensure_partner_events(self.partner, source), store)
        return store

    def exchange(self) -> LocalStore | None:
        """The folder where Spark stages parts, if it can't reach the landing zone."""
        return open_exchange(self._place())

    def _place(self) -> LandingZoneConfig:
        if self.onelake is None:
            return LandingZoneConfig.model_validate({"path": self.path})
        return LandingZoneConfig(onelake=OneLakeConfig.model_validate(self.onelake.model_dump()))
