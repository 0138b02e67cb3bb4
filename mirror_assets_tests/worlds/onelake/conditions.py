"""What a request must fulfil: its conditional headers, and what OneLake refuses where Azure Storage would not."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_assets_tests.worlds.onelake.account import Item, Node, Place
from mirror_assets_tests.worlds.onelake.messages import (
    CHANGED,
    KEY_REFUSED,
    MANAGED,
    NOT_BUILT,
    NOT_HERE,
    SAS_REFUSED,
    SOURCE_CHANGED,
    Refusal,
    Refused,
    Request,
)

_PERMISSION_HEADERS = (
    "x-ms-owner",
    "x-ms-group",
    "x-ms-permissions",
    "x-ms-acl",
    "x-ms-encryption-key",
    "x-ms-encryption-key-sha256",
    "x-ms-encryption-algorithm",
    "x-ms-access-tier",
)


def require(headers: Mapping[str, str], found: Node | None, taken: Refusal = CHANGED) -> None:
    """Refuse a request whose If-Match or If-None-Match is not met, the latter with `taken`."""
    match, none_match = headers.get("If-Match"), headers.get("If-None-Match")
    if match is not None and not _names(match, found):
        raise Refused(CHANGED)
    if none_match is not None and _names(none_match, found):
        raise Refused(taken)


def require_source(headers: Mapping[str, str], found: Node) -> None:
    """Refuse a rename whose source is not the file that its headers name."""
    match, none_match = headers.get("x-ms-source-if-match"), headers.get("x-ms-source-if-none-match")
    if match is not None and not _names(match, found):
        raise Refused(SOURCE_CHANGED)
    if none_match is not None and _names(none_match, found):
        raise Refused(SOURCE_CHANGED)


def _names(etag: str, found: Node | None) -> bool:
    """Whether the ETag is that of what was found; abfs sends ETags back as listings give them, without quotes."""
    return found is not None and (etag == "*" or etag.strip('"') == found.etag.strip('"'))


def require_no_key(request: Request) -> None:
    """Refuse shared keys and shared access signatures, whether good or bad."""
    if "sig" in request.query:
        raise Refused(SAS_REFUSED)
    if request.headers.get("Authorization", "").startswith("SharedKey"):
        raise Refused(KEY_REFUSED)


def require_item(place: Place) -> Item:
    """The item that a request is about; what makes, changes or deletes a workspace is refused."""
    if place.item is None:
        raise Refused(NOT_HERE)
    return place.item


def require_unmanaged(path: str) -> None:
    """Refuse to make, change or delete an item, or a folder directly in it."""
    if "/" not in path:
        raise Refused(MANAGED)


def require_no_metadata(request: Request) -> None:
    """Refuse what we never send, rather than forget it: metadata, and leases."""
    if any(name.lower().startswith(("x-ms-meta-", "x-ms-lease-id")) for name in request.headers):
        raise Refused(NOT_BUILT)
    if request.headers.get("x-ms-properties"):
        raise Refused(NOT_BUILT)


def ignored_headers(request: Request) -> str:
    """The headers of the request that OneLake ignores, as it names them in its answer."""
    return ",".join(name for name in _PERMISSION_HEADERS if name in request.headers)
