"""The landing zone as a Dagster resource."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from pydantic import Field

from mirror_assets.landing.metadata import ensure_partner_events
from mirror_assets.landing.steps import drive
from mirror_assets.storage import LocalStore, Store


class LandingZone(dg.ConfigurableResource[None]):
    """Where landing files go.

    .. code-block:: python

        LandingZone(path="/data/landing", partner="mirror_assets").store().list("")
    """

    path: str = Field(description="Folder of the landing zone on this machine.")
    partner: str = Field(default="mirror_assets", description="partnerName in _partnerEvents.json.")
    source_type: str = Field(default="Delta Lake", description="sourceType in _partnerEvents.json.")
    source_version: str = Field(default="", description="sourceVersion in _partnerEvents.json.")

    def store(self) -> Store:
        """The store under the landing zone, with its partner file in place."""
        store = LocalStore(Path(self.path))
        source = {"sourceType": self.source_type, "sourceVersion": self.source_version}
        drive(ensure_partner_events(self.partner, source), store)
        return store
