"""Reads and writes control files by compare-and-swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import RecordT, decode, encode
from mirror_assets.landing.steps import Create, Read, Replace, Steps, drive
from mirror_assets.zones import Content, PathChanged, PathExists, PathMissing, Store
from mirror_assets.zones.errors import REQUEST_UNKNOWN, STORE_DENIED


@dataclass(frozen=True)
class ControlFile(Generic[RecordT]):
    """The record at a path, and the content with its ETag; both are None if the file doesn't exist.

    An unreadable hint has content and no record.
    """

    path: str
    record: RecordT | None = None
    content: Content | None = None


def read_control_file(model: type[RecordT], path: str, *, is_hint: bool = False) -> Steps[ControlFile[RecordT]]:
    """Read the file. Raises ManifestCorrupt, unless it is a hint: those only save work, and are written again."""
    content = yield from Read(path)
    if content is None:
        return ControlFile(path)
    try:
        return ControlFile(path, decode(model, path, content.data), content)
    except ManifestCorrupt:
        if not is_hint:
            raise
        return ControlFile(path, None, content)


def write_control_file(found: ControlFile[RecordT], record: RecordT) -> Steps[bool]:
    """Write the record in place of `found`; return False if another process has changed the file since."""
    try:
        if found.content is None:
            yield from Create(found.path, encode(record))
        else:
            yield from Replace(found.path, encode(record), found.content.etag)
    except (PathExists, PathChanged, PathMissing):
        return False
    return True


def write_hint(found: ControlFile[RecordT], record: RecordT, store: Store) -> None:
    """Write a record that only saves work: another writer may be faster, and this account may have no permission."""
    try:
        drive(write_control_file(found, record), store)
    except MirrorError as error:
        if error.row not in (STORE_DENIED, REQUEST_UNKNOWN):
            raise
