"""What OneLake refuses or ignores where Azure Storage would not."""

from __future__ import annotations

from mirror_assets_tests.worlds.onelake.account import Item, Place
from mirror_assets_tests.worlds.onelake.messages import Request
from mirror_assets_tests.worlds.onelake.refusals import KEY_REFUSED, MANAGED, NOT_BUILT, NOT_HERE, SAS_REFUSED, Refused

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
