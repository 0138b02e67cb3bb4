"""The rule over the mirrored database and the landing zone."""

from __future__ import annotations

from mirror_assets.config.document import Document
from mirror_assets.config.rules import Mistakes

_FABRIC = ("mirror", "fabric")


def zone_of_fabric(document: Document) -> Mistakes:
    """Require a landing zone on OneLake for a mirrored database in Fabric."""
    others = (name for name in document.names("landing_zone") if name != "onelake")
    if document.get(*_FABRIC) is not None and any(document.get("landing_zone", name) is not None for name in others):
        yield _FABRIC, "Fabric mirrors a landing zone on OneLake; set landing_zone.onelake, or mirror.path"
