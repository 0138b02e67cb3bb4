"""Conditional headers: what a request wants of the file that it finds."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_assets_tests.worlds.onelake.refusals import CHANGED, SOURCE_CHANGED, Refusal, Refused
from mirror_assets_tests.worlds.onelake.tree import Node


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
