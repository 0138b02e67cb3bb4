"""What a table may need of its reader (Delta's protocol, "Valid Feature Names in Table Features")."""

from __future__ import annotations

from mirror_assets.delta.actions import Protocol
from mirror_assets.delta.errors import CatalogManaged, SourceUnsupported

_READER_VERSION = 3
_PREVIEW = "-preview"
# Those that the replay of the log, and the look at footers, know how to read.
_KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantType",
    }
)
_CATALOG = frozenset({"catalogManaged", "catalogOwned"})


def require_readable(uri: str, protocol: Protocol) -> None:
    """Raises CatalogManaged, and SourceUnsupported for a reader version or a reader feature that is not known here."""
    features = {feature.removesuffix(_PREVIEW): feature for feature in sorted(protocol.reader_features)}
    if features.keys() & _CATALOG:
        raise CatalogManaged(uri)
    if protocol.reader > _READER_VERSION:
        raise SourceUnsupported(uri, f"reader version {protocol.reader} of Delta's protocol")
    for name, feature in features.items():
        if name not in _KNOWN:
            raise SourceUnsupported(uri, f"the table feature `{feature}`")
