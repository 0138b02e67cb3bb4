"""The places of the landing zone and the mirrored tables."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Folder, SchemaName, Section, Text
from mirror_assets.fabric.database import DEFAULT_SCHEMA, PUBLIC_ENDPOINT
from mirror_assets.storage.credentials import CredentialKind
from mirror_assets.storage.onelake.onelake_address import OneLakeAddress

MIRROR_PATH, STAGING_PATH = "./mirror", "./staging"

_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_CREDENTIAL_NEEDED = (
    "Spark can't use the credential `default`; set client_secret, managed_identity or workload_identity, or "
    "`staging: upload`"
)
_TOKEN = "How to obtain a token."  # noqa: S105 a description
_CA_BUNDLE = "PEM bundle of CAs to trust; null: the default ones."


class Staging(str, Enum):
    """The process that writes the staged parts: Spark itself, or this process, which uploads Spark's files."""

    DIRECT = "direct"
    UPLOAD = "upload"


def _endpoint(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or parts.path.strip("/"):
        raise ValueError(f"expected an endpoint such as {PUBLIC_ENDPOINT}, got {value!r}")
    return f"https://{parts.netloc}"


class OneLakeConfig(Section):
    """A landing zone on OneLake."""

    url: Text = Field(description="URL of the landing zone, copied from the portal.")
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description=_TOKEN)
    staging: Staging = Field(default=Staging.UPLOAD, description="Which process writes the staged parts.")
    staging_path: Folder = Field(
        default=Path(STAGING_PATH), validate_default=True, description="Folder for `staging: upload`."
    )
    api_version: Text | None = Field(default=None, description="`x-ms-version` to send; null: the SDK's newest.")
    ca_bundle: Folder | None = Field(default=None, description=_CA_BUNDLE)

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


class FabricConfig(Section):
    """The mirrored database that applies the landing files; the landing zone's URL names it."""

    endpoint: Annotated[str, BeforeValidator(_endpoint)] = Field(
        default=PUBLIC_ENDPOINT, description="Address of Fabric's REST API."
    )
    credential: CredentialKind = Field(default=CredentialKind.DEFAULT, description=_TOKEN)
    ca_bundle: Folder | None = Field(default=None, description=_CA_BUNDLE)
    default_schema: SchemaName = Field(default=DEFAULT_SCHEMA, description="Schema of tables without one.")


class MirrorConfig(Section):
    """The mirrored tables: those of the local stand-in for Fabric's replicator, or of a mirrored database in Fabric."""

    path: Folder = Field(
        default=Path(MIRROR_PATH), validate_default=True, description="Folder of the stand-in's Delta tables."
    )
    fabric: FabricConfig | None = Field(default=None, description="Mirrored database, instead of the stand-in.")

    @model_validator(mode="after")
    def _one_mirror(self) -> Self:
        if self.fabric is not None and "path" in self.model_fields_set:
            raise ValueError("set either `path` or `fabric`")
        return self
