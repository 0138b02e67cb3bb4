"""A table's manifest, and the position at which the next slice must be staged to be committed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mirror_assets.landing.format import Loading, Manifest, SliceRecord, decode, encode
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Create, Read, Replace, Steps
from mirror_assets.zones import PathExists


@dataclass(frozen=True)
class VersionedManifest:
    """A manifest, and its ETag for a compare-and-swap."""

    manifest: Manifest
    etag: str


@dataclass(frozen=True)
class CommitPosition:
    """The generation, first file number and covered version with which the next slice must be staged to be committed.

    Without a table folder, `covered` is -1 and `generation` 1. `covered` stays -1 until the last chunk of the first
    snapshot has landed; `loading` is the newest chunk before that.
    """

    epoch: int
    incarnation: str
    generation: int
    first_number: int
    covered: int
    loading: Loading | None = None

    def after(self, *, covered: int, files: int, loading: Loading | None = None) -> CommitPosition:
        """Return the position after a slice, or chunk, with this many files."""
        return CommitPosition(
            self.epoch, self.incarnation, self.generation + 1, self.first_number + files, covered, loading
        )

    def behind(self, record: SliceRecord) -> CommitPosition:
        """Return the position after this record, which is staged at this position."""
        position = replace(self, incarnation=record.incarnation)
        return position.after(covered=record.covers, files=len(record.parts), loading=record.loading)


def next_position(manifest: Manifest | None, *, epoch: int, incarnation: str) -> CommitPosition:
    """Return the position after the manifest; without one, the start of a new epoch with this `incarnation`."""
    if manifest is None:
        return CommitPosition(epoch, incarnation, generation=1, first_number=1, covered=-1)
    return CommitPosition(
        manifest.epoch,
        manifest.incarnation,
        manifest.generation + 1,
        manifest.next_number,
        manifest.covered,
        manifest.loading,
    )


def read_manifest(table: TableName) -> Steps[VersionedManifest | None]:
    """Read the manifest in the table folder, or None. Raises ManifestCorrupt."""
    content = yield from Read(table.manifest)
    if content is None:
        return None
    return VersionedManifest(decode(Manifest, table.manifest, content.data), content.etag)


def put_manifest(table: TableName, manifest: Manifest, etag: str | None) -> Steps[None]:
    """Replace the manifest that has `etag`; without `etag`, create it.

    Creating also replaces a manifest of an ended epoch, which a late publisher wrote. Raises PathExists, PathChanged,
    PathMissing and what a store raises.
    """
    data = encode(manifest)
    if etag is not None:
        yield from Replace(table.manifest, data, etag)
        return
    try:
        yield from Create(table.manifest, data)
    except PathExists:
        found = yield from read_manifest(table)
        if found is None or found.manifest.epoch >= manifest.epoch:
            raise
        yield from Replace(table.manifest, data, found.etag)
