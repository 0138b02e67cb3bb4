"""`_metadata.json` and `_partnerEvents.json` (reference `landing-zone` §4.2 and §4.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mirror_assets.landing.errors import METADATA_DIFFERS, TABLE_DROPPED
from mirror_assets.landing.names import PARTNER_EVENTS, TableName
from mirror_assets.landing.steps import Create, Read, Replace, Steps
from mirror_assets.zones import Content, PathChanged, PathExists, PathMissing, Store


def metadata_bytes(keys: Sequence[str]) -> bytes:
    """Return the content of a `_metadata.json` that declares these key columns."""
    return _text({}, keys)


def declared_keys(data: bytes) -> tuple[str, ...] | None:
    """Return the key columns that a `_metadata.json` declares; None if it is not valid."""
    document = _document(data)
    keys = document.get("keyColumns", []) if document is not None else None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        return None
    return tuple(keys)


def ensure_metadata(table: TableName, keys: Sequence[str], landed: Sequence[str] = ()) -> Steps[None]:
    """Declare the key columns before any data lands: create the file if it is absent, read it back, and compare.

    If none were declared, they may be added later (reference `landing-zone` §4.2), by compare-and-swap. Keys in the
    manifest (`landed`) are not added again: another process has removed them.

    Raises METADATA_DIFFERS, and TABLE_DROPPED when the file just written is missing.
    """
    content = yield from Read(table.metadata)
    if content is None:
        try:
            yield from Create(table.metadata, metadata_bytes(keys))
        except PathExists:
            pass  # another publisher has declared them: its file is compared below
        content = yield from Read(table.metadata)
        if content is None:
            raise TABLE_DROPPED(table=str(table), step="while its keys were declared")
    if keys and not landed and declared_keys(content.data) == ():
        content = yield from _add_keys(table, keys, content)
    found = declared_keys(content.data)
    if found != tuple(keys):
        shown = "no readable keyColumns" if found is None else f"keyColumns {list(found)}"
        raise METADATA_DIFFERS(table=str(table), path=table.metadata, found=shown, wanted=str(list(keys)))


def _add_keys(table: TableName, keys: Sequence[str], content: Content) -> Steps[Content]:
    """Add the keys to `_metadata.json`, whose other settings are unchanged, and read it back.

    A late request does no harm: it is refused unless the file is still the one without keys.
    """
    try:
        yield from Replace(table.metadata, _text(_document(content.data) or {}, keys), content.etag)
    except (PathChanged, PathMissing):
        pass  # another publisher has written the file, or a drop has deleted it: the current file decides
    found = yield from Read(table.metadata)
    if found is None:
        raise TABLE_DROPPED(table=str(table), step="while its keys were declared")
    return found


def _document(data: bytes) -> dict[str, object] | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _text(document: Mapping[str, object], keys: Sequence[str]) -> bytes:
    declared = {"keyColumns": list(keys)} if keys else {}
    return json.dumps({**document, **declared}, ensure_ascii=False).encode()


def ensure_partner_events(store: Store, name: str, source_info: Mapping[str, str]) -> None:
    """Name the publisher at the landing zone's root, unless the file exists: partnerName must be constant."""
    if store.head(PARTNER_EVENTS) is None:
        text = json.dumps({"partnerName": name, "sourceInfo": dict(source_info)})
        with suppress(PathExists):
            store.create(PARTNER_EVENTS, text.encode())
