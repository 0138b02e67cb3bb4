"""Where a table stands: its manifest, and what the next slice must be staged as."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mirror_assets.landing.format import Loading, Manifest, SliceRecord, decode, encode
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Create, Replace, Steps, read
from mirror_assets.storage import PathExists


@dataclass(frozen=True)
class VersionedManifest:
    """The manifest with the ETag that a compare-and-swap needs."""

    manifest: Manifest
    etag: str


@dataclass(frozen=True)
class CommitPosition:
    """What a slice has to be staged as, so that it can be the next to commit.

    `covered` is -1 and `generation` 1 in a table folder that does not exist yet. `covered` stays -1 while chunks of the
    first snapshot are left; `loading` says after which one the next begins.
    """

    epoch: int
    incarnation: str
    generation: int
    first_number: int
    covered: int
    loading: Loading | None = None

    def after(self, *, covered: int, files: int, loading: Loading | None = None) -> CommitPosition:
        """The footing of the slice, or chunk, that follows one with this many files."""
        return CommitPosition(
            self.epoch, self.incarnation, self.generation + 1, self.first_number + files, covered, loading
        )

    def behind(self, record: SliceRecord) -> CommitPosition:
        """The footing of what follows this record, which stands on this footing."""
        position = replace(self, incarnation=record.incarnation)
        return position.after(covered=record.covers, files=len(record.parts), loading=record.loading)


def next_position(manifest: Manifest | None, *, epoch: int, incarnation: str) -> CommitPosition:
    """The footing that the manifest gives; without one, a new epoch under `incarnation`."""
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
    """The manifest in the table folder, or None. Raises ManifestCorrupt."""
    content = yield from read(table.manifest)
    if content is None:
        return None
    return VersionedManifest(decode(Manifest, table.manifest, content.data), content.etag)


def put_manifest(table: TableName, manifest: Manifest, etag: str | None) -> Steps[None]:
    """Put the manifest in the place of the one with `etag`; None: of none, or of one whose epoch has ended.

    A publisher of that epoch may have been late. Raises PathExists, PathChanged, PathMissing and what a store raises.
    """
    data = encode(manifest)
    if etag is not None:
        yield Replace(table.manifest, data, etag)
        return
    try:
        yield Create(table.manifest, data)
    except PathExists:
        found = yield from read_manifest(table)
        if found is None or found.manifest.epoch >= manifest.epoch:
            raise
        yield Replace(table.manifest, data, found.etag)
