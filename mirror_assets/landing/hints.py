"""Reads and writes hints: control files beside the protocol that save work, on which safety does not depend.

An unreadable one counts as missing, and is written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import Record, decode, encode
from mirror_assets.landing.steps import Create, Replace, Steps, read
from mirror_assets.storage import Content, PathChanged, PathExists, PathMissing

_Record = TypeVar("_Record", bound=Record)


@dataclass(frozen=True)
class Hint(Generic[_Record]):
    """What a path has: the record, None when there is no readable one, and the content that it was read from."""

    path: str
    record: _Record | None
    content: Content | None


def read_hint(model: type[_Record], path: str) -> Steps[Hint[_Record]]:
    """Read the hint at the path."""
    content = yield from read(path)
    if content is None:
        return Hint(path, None, None)
    try:
        return Hint(path, decode(model, path, content.data), content)
    except ManifestCorrupt:
        return Hint(path, None, content)


def write_hint(found: Hint[_Record], record: _Record) -> Steps[bool]:
    """Write the record in the place of what was found; return False when another has changed that meanwhile."""
    try:
        if found.content is None:
            yield Create(found.path, encode(record))
        else:
            yield Replace(found.path, encode(record), found.content.etag)
    except (PathExists, PathChanged, PathMissing):
        return False
    return True
