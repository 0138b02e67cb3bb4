"""The places of the landing zone and the mirrored tables."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Folder, Section, Text, with_settings
from mirror_assets.feature import features
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.onelake.onelake_address import OneLakeAddress

MIRROR_PATH, STAGING_PATH = "./mirror", "./staging"

_CREDENTIAL_NEEDED = (
    "Spark can't use the credential `default`; set client_secret, managed_identity or workload_identity, or "
    "`staging: upload`"
)
TOKEN = "How to obtain a token."  # noqa: S105 a description
CA_BUNDLE = "PEM bundle of CAs to trust; null: the default ones."


class Staging(str, Enum):
    """The process that writes the staged parts: Spark itself, or this process, which uploads Spark's files."""

    DIRECT = "direct"
    UPLOAD = "upload"


class OneLakeConfig(Section):
    """A landing zone on OneLake."""

    url: Text = Field(description="URL of the landing zone, copied from the portal.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description=TOKEN)
    staging: Staging = Field(default=Staging.UPLOAD, description="Which process writes the staged parts.")
    staging_path: Folder = Field(
        default=Path(STAGING_PATH), validate_default=True, description="Folder for `staging: upload`."
    )
    api_version: Text | None = Field(default=None, description="`x-ms-version` to send; null: the SDK's newest.")
    ca_bundle: Folder | None = Field(default=None, description=CA_BUNDLE)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.staging is Staging.DIRECT and self.credential is CredentialKind.DEFAULT:
            raise ValueError(_CREDENTIAL_NEEDED)
        _ = self.address  # raises ValueError for an invalid URL
        return self

    @property
    def address(self) -> OneLakeAddress:
        """The landing zone's address."""
        return OneLakeAddress.parse(self.url)


class LandingZoneConfig(Section):
    """The landing zone: a folder on this machine, or a mirrored database's folder on OneLake."""

    path: Folder | None = Field(default=None, description="Folder of the landing zone on this machine.")
    onelake: OneLakeConfig | None = Field(default=None, description="Landing zone on OneLake.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.onelake is None):
            raise ValueError("set either `path` or `onelake`")
        return self


class CoreMirror(Section):
    """The tables of the local stand-in for Fabric's replicator."""

    path: Folder = Field(
        default=Path(MIRROR_PATH), validate_default=True, description="Folder of the stand-in's Delta tables."
    )


if TYPE_CHECKING:

    class MirrorSections(CoreMirror):
        """The stand-in's tables, or what mirrors instead."""
else:
    MirrorSections = with_settings(CoreMirror, [feature.mirror_settings() for feature in features()])


class MirrorConfig(MirrorSections):
    """The mirrored tables: those of the local stand-in for Fabric's replicator, or of a feature's mirror."""

    @model_validator(mode="after")
    def _one_mirror(self) -> Self:
        others = [name for name in sorted(self.model_fields_set - {"path"}) if getattr(self, name) is not None]
        if others and "path" in self.model_fields_set:
            raise ValueError(f"set either `path` or `{others[0]}`")
        return self
