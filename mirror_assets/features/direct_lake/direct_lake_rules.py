"""Rules over the settings of Direct Lake and others."""

from __future__ import annotations

from mirror_assets.config.document import Document
from mirror_assets.config.rules import Mistakes, written_tables
from mirror_assets.features.direct_lake.direct_lake_settings import FramesOf
from mirror_assets.lakes.catalogs import CatalogCredentials, CatalogType

_FABRIC_FRAMES = (
    "nothing checks the frames of a mirror in Fabric, because Fabric vacuums its tables; set it to `source`, or mirror "
    "with the stand-in (mirror.path)"
)
_READ_ONLY = (
    "the catalog's credentials for this table only allow reading; leave maintenance to the table's owner, or set "
    "`credentials: stores` in the catalog"
)


def no_vended_maintenance(document: Document) -> Mistakes:
    """Refuse maintenance of tables that are read with a catalog's credentials, which don't allow writing."""
    for _, settings, source in written_tables(document):
        catalog = ("catalogs", str(document.get(*source, "catalog")))
        is_stores = document.get(*catalog, "credentials") == CatalogCredentials.STORES.value
        if document.get(*catalog, "type") != CatalogType.UNITY.value or is_stores:
            continue
        for place in (("defaults",), settings):
            if document.get(*place, "maintenance"):
                yield (*place, "maintenance"), _READ_ONLY


def checked_frames(document: Document) -> Mistakes:
    """Refuse `frames_of: mirror` for a mirrored database: Fabric vacuums its tables itself."""
    if document.get("mirror", "fabric") is None:
        return
    for place in (("defaults",), *(settings for _, settings, _ in written_tables(document))):
        steps = (*place, "direct_lake", "frames_of")
        if document.get(*steps) == FramesOf.MIRROR.value:
            yield steps, _FABRIC_FRAMES
