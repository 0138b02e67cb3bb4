"""The settings of the mirrored database in Fabric."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from mirror_assets.config.document import Document
from mirror_assets.config.setting_values import SchemaName
from mirror_assets.monitoring import DEFAULT_SCHEMA
from mirror_assets.settings import Section

if TYPE_CHECKING:
    from mirror_assets.config.rules import Mistakes

PUBLIC_ENDPOINT = "https://api.fabric.microsoft.com"
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")


def _endpoint(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or parts.path.strip("/"):
        raise ValueError(f"expected an endpoint such as {PUBLIC_ENDPOINT}, got {value!r}")
    return f"https://{parts.netloc}"


class FabricConfig(Section):
    """The mirrored database that applies the landing files: the landing zone has its address and identity."""

    endpoint: Annotated[str, BeforeValidator(_endpoint)] = Field(
        default=PUBLIC_ENDPOINT, description="Address of Fabric's REST API."
    )
    default_schema: SchemaName = Field(default=DEFAULT_SCHEMA, description="Schema of tables without one.")
    refresh_sql_endpoint: bool = Field(
        default=False, description="Refresh the SQL endpoint's metadata of tables that Fabric has changed."
    )


class FabricMirrorSettings(Section):
    """The mirrored database, in the section `mirror`."""

    fabric: FabricConfig | None = Field(default=None, description="Mirrored database, instead of the stand-in.")


_FABRIC = ("mirror", "fabric")


def zone_of_fabric(document: Document) -> Mistakes:
    """Require a landing zone on OneLake for a mirrored database in Fabric."""
    others = (name for name in document.names("landing_zone") if name != "onelake")
    if document.get(*_FABRIC) is not None and any(document.get("landing_zone", name) is not None for name in others):
        yield _FABRIC, "Fabric mirrors a landing zone on OneLake; set landing_zone.onelake, or mirror.path"
