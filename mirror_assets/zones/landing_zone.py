"""The section `landing_zone` of mirror.yaml: the list of the kinds of landing zones."""

from __future__ import annotations

from pydantic import Field, model_validator
from typing_extensions import Self

from mirror_assets.settings import Folder, Section
from mirror_assets.zones.local import LocalZone
from mirror_assets.zones.onelake.onelake_zone import OneLakeConfig

# A landing zone as mirror.yaml sets it, by one interface. No other package asks which of them it is.
Zone = LocalZone | OneLakeConfig


class LandingZoneConfig(Section):
    """The landing zone: a folder on this machine, or a mirrored database's folder on OneLake."""

    path: Folder | None = Field(default=None, description="Folder of the landing zone on this machine.")
    onelake: OneLakeConfig | None = Field(default=None, description="Landing zone on OneLake.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if len(self._zones()) != 1:
            raise ValueError("set either `path` or `onelake`")
        return self

    @property
    def zone(self) -> Zone:
        """The landing zone that is set."""
        return self._zones()[0]

    def _zones(self) -> list[Zone]:
        folder = LocalZone(self.path) if self.path is not None else None
        return [zone for zone in (folder, self.onelake) if zone is not None]
