"""A landing zone on OneLake, as mirror.yaml writes it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import Self

from mirror_assets.config.values import Folder, Text
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.onelake.address import ENDPOINT, OneLakeAddress

_NEEDS_NAME = (
    "Spark can't use the credential `default`; name one (client_secret, managed_identity or workload_identity), "
    "or write `staging: upload`"
)


class Staging(str, Enum):
    """Who writes the staged parts: Spark itself, or this process, which uploads what Spark wrote elsewhere."""

    DIRECT = "direct"
    UPLOAD = "upload"


class OneLakeConfig(BaseModel):
    """Where the landing zone is on OneLake, who we are there, and how parts get there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Text | None = Field(default=None, description="The landing zone's URL, as the portal shows it.")
    workspace: Text | None = Field(default=None, description="The workspace's GUID, in place of `url`.")
    item: Text | None = Field(default=None, description="The mirrored database's GUID, in place of `url`.")
    endpoint: Text = Field(default=ENDPOINT, description="Another endpoint, such as a region's, beside the GUIDs.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description="How a token is got.")
    staging: Staging = Field(default=Staging.UPLOAD, description="Who writes the staged parts.")
    staging_path: Folder = Field(default=Path("staging"), description="Folder for `staging: upload`.")
    api_version: Text | None = Field(default=None, description="x-ms-version, if not the SDK's newest.")
    ca_bundle: Folder | None = Field(default=None, description="PEM file of authorities to trust, if not the usual.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        named = (self.workspace is not None, self.item is not None)
        if named != (self.url is None, self.url is None):
            raise ValueError("give either `url`, or `workspace` and `item`")
        if self.staging is Staging.DIRECT and self.credential is CredentialKind.DEFAULT:
            raise ValueError(_NEEDS_NAME)
        _ = self.address  # raises ValueError for what is no address
        return self

    @property
    def address(self) -> OneLakeAddress:
        """Where the landing zone is."""
        if self.url is not None:
            return OneLakeAddress.parse(self.url)
        return OneLakeAddress((self.workspace or "").lower(), (self.item or "").lower(), self.endpoint.rstrip("/"))
