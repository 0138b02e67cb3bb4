"""`_metadata.json` and `_partnerEvents.json` (reference `landing-zone` §4.2 and §4.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mirror_assets.landing.errors import MetadataDiffers, TableDropped
from mirror_assets.landing.names import PARTNER_EVENTS, TableName
from mirror_assets.landing.steps import Create, Steps, read
from mirror_assets.storage import PathExists


def metadata_bytes(keys: Sequence[str]) -> bytes:
    """`_metadata.json` that declares these key columns."""
    return json.dumps({"keyColumns": list(keys)}, ensure_ascii=False).encode()


def declared_keys(data: bytes) -> tuple[str, ...] | None:
    """The key columns that a `_metadata.json` declares; None when it isn't one that we could have written."""
    try:
        keys = json.loads(data)["keyColumns"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        return None
    return tuple(keys)


def ensure_metadata(table: TableName, keys: Sequence[str]) -> Steps[None]:
    """Declare the key columns before any data lands; put-if-absent, read back, compare.

    Raises MetadataDiffers, and TableDropped when what was just put there is gone.
    """
    content = yield from read(table.metadata)
    if content is None:
        try:
            yield Create(table.metadata, metadata_bytes(keys))
        except PathExists:
            pass  # another publisher declared them meanwhile: compared below like any other
        content = yield from read(table.metadata)
        if content is None:
            raise TableDropped(str(table), "while its keys were declared")
    found = declared_keys(content.data)
    if found != tuple(keys):
        shown = "no readable keyColumns" if found is None else f"keyColumns {list(found)}"
        raise MetadataDiffers(str(table), table.metadata, shown, str(list(keys)))


def ensure_partner_events(name: str, source_info: Mapping[str, str]) -> Steps[None]:
    """Name the publisher once, at the landing zone's root; an existing file stays (partnerName must be constant)."""
    if (yield from read(PARTNER_EVENTS)) is not None:
        return
    text = json.dumps({"partnerName": name, "sourceInfo": dict(source_info)})
    try:
        yield Create(PARTNER_EVENTS, text.encode())
    except PathExists:
        return
