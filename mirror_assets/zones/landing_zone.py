"""The landing zone of mirror.yaml: its settings, and the store that they open."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from pydantic import Field, model_validator
from typing_extensions import Self

from mirror_assets.lakes.azure_identity import CredentialKind
from mirror_assets.settings import Folder, Section, Text
from mirror_assets.zones import LocalStore, Store
from mirror_assets.zones.errors import ROOT_UNUSABLE
from mirror_assets.zones.onelake.onelake_address import OneLakeAddress

STAGING_PATH = "./staging"

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


def open_zone(config: LandingZoneConfig) -> Store:
    """Return the landing zone's store; it makes no request yet.

    Raises SettingError for a path that is not a folder, missing credentials, and an API version that can't be used.
    """
    if config.path is not None:
        if config.path.exists() and not config.path.is_dir():
            raise ROOT_UNUSABLE(root=str(config.path), why="it is a file, not a folder")
        return LocalStore(config.path)
    from mirror_assets.zones.onelake.clients import shared_clients
    from mirror_assets.zones.onelake.onelake_store import OneLakeStore

    place = config.onelake
    assert place is not None  # noqa: S101 it is one of the two
    return OneLakeStore(shared_clients(place.address, place.credential, place.api_version, place.ca_bundle))
