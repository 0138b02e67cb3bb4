"""Publish a staged slice exactly once: the manifest commits, a rename is redo, the footer is the receipt.

It has five rules (docs/decisions/0001): one compare-and-swap commits; redo comes before anything new; a rename is
conditional on the source's ETag and on the target's absence; staged files are deleted by generation; only one attempt
writes a staged name. It needs no lock, no clock, no number from a listing, and no state outside the landing zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mirror_assets.column_types import longest
from mirror_assets.errors import UnknownOutcome
from mirror_assets.landing.errors import LOST_RACE, SLICE_MISSING, SLICE_NOT_CHECKED, SLICE_NOT_STAGED
from mirror_assets.landing.format import Entry, Manifest, SliceKind, SliceRecord, continues, is_next
from mirror_assets.landing.generations import roll_up
from mirror_assets.landing.metadata import ensure_metadata
from mirror_assets.landing.names import AttemptFolder, TableName
from mirror_assets.landing.rebuild import require_alive
from mirror_assets.landing.recover import collect, found_parts, land, list_attempts, recover
from mirror_assets.landing.state import VersionedManifest, put_manifest, read_manifest
from mirror_assets.landing.steps import Steps
from mirror_assets.zones import PathChanged, PathExists, PathMissing


class Outcome(str, Enum):
    """How a publication ended."""

    LANDED = "landed"
    COVERED = "already covered"
    VOID = "void"


@dataclass(frozen=True)
class Published:
    """The table's manifest after a publication, and what this publication landed.

    Of the commits that it landed, `unproved` is the number that the log can't prove, and `by_files` the number that was
    read by files because the change data feed could not be.
    """

    outcome: Outcome
    manifest: Manifest
    entries: tuple[Entry, ...] = ()
    unproved: int = 0
    by_files: int = 0


def publish(
    table: TableName, record: SliceRecord, checks: Sequence[str], rebuild_epoch: int | None = None
) -> Steps[Published]:
    """Recover the table, and land the slice's parts. Raises what `recover_to_publish` and `publish_after` raise."""
    recovered = yield from recover_to_publish(table, rebuild_epoch)
    return (yield from publish_after(table, recovered, record, checks))


@dataclass(frozen=True)
class RecoveredTable:
    """A table whose committed files have landed: its manifest, and the attempts that were staged before that."""

    attempts: tuple[AttemptFolder, ...]
    current: VersionedManifest | None


def recover_to_publish(table: TableName, rebuild_epoch: int | None = None) -> Steps[RecoveredTable]:
    """Land the files of the manifest, and list the attempts that may land next. Raises what `recover` raises."""
    attempts = yield from list_attempts(table)  # before the manifest is read, as `collect` says
    return RecoveredTable(tuple(attempts), (yield from recover(table, rebuild_epoch)))


def publish_after(
    table: TableName, recovered: RecoveredTable, record: SliceRecord, checks: Sequence[str]
) -> Steps[Published]:
    """Land the parts of the slice, or of one chunk of it, under the next numbers, unless they have landed before.

    The record must have a passed verdict of each of the blocking `checks`. Raises SLICE_MISSING (a gap),
    SLICE_NOT_CHECKED, SLICE_NOT_STAGED (staged for another generation), LostRace, TABLE_DROPPED (staged before that),
    and METADATA_DIFFERS.
    """
    current = recovered.current
    if current is not None:
        yield from collect(recovered.attempts, current.manifest)
        yield from roll_up(table, current.manifest)
    else:
        yield from require_alive(table, record.epoch)
    done = _covered_before(record, current)
    if done is not None:
        return done
    _require_fit(record, current)
    _require_verdicts(record, checks)
    manifest = _manifest(record, current)
    yield from _require_parts(record, manifest)
    yield from ensure_metadata(table, record.keys, current.manifest.keys if current else ())
    yield from _commit(table, manifest, current)
    yield from land(table, manifest)
    return Published(Outcome.LANDED, manifest, manifest.entries, record.unproved_commits, record.commits_by_files)


def _covered_before(record: SliceRecord, current: VersionedManifest | None) -> Published | None:
    """Return the outcome for a record that is already covered, or of an earlier epoch; else None."""
    if current is None:
        return None
    manifest, key, chunk = current.manifest, record.slice, record.chunk
    loading = manifest.loading
    if key.epoch < manifest.epoch:
        return Published(Outcome.VOID, manifest)
    if record.kind is SliceKind.REPAIR:  # bound to its generation: covered versions say nothing about it
        return Published(Outcome.COVERED, manifest) if manifest.attempt == record.attempt else None
    is_chunk_covered = loading and chunk and key == loading.key and chunk.end <= loading.chunk.end
    if key.last <= manifest.covered or is_chunk_covered:
        return Published(Outcome.COVERED, manifest)
    return None


def _require_fit(record: SliceRecord, current: VersionedManifest | None) -> None:
    """Raise unless the slice is staged as the manifest's next generation.

    A snapshot can only start an epoch: its rows are inserts, and would double earlier ones. So only its own next chunk
    can follow a chunk.
    """
    table, key = record.table, str(record.slice)
    if current is None:
        if record.kind is not SliceKind.SNAPSHOT and record.generation != 1:
            raise SLICE_MISSING(table=table, key=key, wanted_first=0)
        fits = record.generation == 1 and record.first_number == 1 and is_next(record.slice, record.chunk, None)
    else:
        manifest = current.manifest
        if record.slice.first > manifest.covered + 1:
            raise SLICE_MISSING(table=table, key=key, wanted_first=manifest.covered + 1)
        fits = (
            (record.kind is not SliceKind.SNAPSHOT) == (manifest.loading is None)
            and is_next(record.slice, record.chunk, manifest.loading)
            and record.incarnation == manifest.incarnation
            and record.epoch == manifest.epoch
            and record.generation == manifest.generation + 1
            and record.first_number == manifest.next_number
            and continues(record.kind, record.slice, manifest.covered)
        )
    if not fits:
        raise SLICE_NOT_STAGED(table=table, key=key)


def _require_verdicts(record: SliceRecord, checks: Sequence[str]) -> None:
    """Raise SLICE_NOT_CHECKED unless each check has passed exactly these files, by their ETags."""
    verdicts = {verdict.check: verdict for verdict in record.verdicts if verdict.etags == record.etags}
    missing = tuple(check for check in checks if check not in verdicts)
    failed = tuple(check for check in checks if check in verdicts and not verdicts[check].passed)
    if missing or failed:
        reasons = [f"failed: {', '.join(failed)}"] if failed else []
        reasons += [f"not run: {', '.join(missing)}"] if missing else []
        raise SLICE_NOT_CHECKED(
            table=record.table, key=str(record.slice), reasons="; ".join(reasons), missing=missing, failed=failed
        )


def _require_parts(record: SliceRecord, manifest: Manifest) -> Steps[None]:
    """Raise SLICE_NOT_STAGED if a part has changed since its checks: once committed, it could not land."""
    if not manifest.entries:
        return
    found = yield from found_parts(record)
    if any(found.get(entry.staged) != entry.etag for entry in manifest.entries):
        raise SLICE_NOT_STAGED(table=record.table, key=str(record.slice))


def _manifest(record: SliceRecord, current: VersionedManifest | None) -> Manifest:
    """Build the manifest that commits the record; its columns are the union of all landed so far."""
    entries = tuple(
        Entry(
            staged=record.folder.part(part.name),
            number=record.first_number + index,
            etag=part.etag,
            bytes=part.bytes,
            sha256=part.sha256,
            markers=part.markers,
        )
        for index, part in enumerate(record.parts)
    )
    names = {column.name for column in record.columns}
    dropped = tuple(column for column in (current.manifest.columns if current else ()) if column.name not in names)
    return Manifest(
        incarnation=record.incarnation,
        epoch=record.epoch,
        source_table_id=record.source_table_id,
        source_schema=record.source_schema,
        keys=record.keys,
        columns=record.columns + dropped,
        where=record.where,
        dropped=tuple(column.name for column in dropped),
        generation=record.generation,
        attempt=record.attempt,
        slice=record.slice,
        kind=record.kind,
        chunk=record.chunk,
        covered=record.covers,
        covered_commit_ms=None if record.loading else record.last_commit_ms,
        commit_digest=record.commit_digest,
        first_number=record.first_number,
        next_number=record.first_number + len(entries),
        landed_rows=(current.manifest.landed_rows if current else 0) + record.markers.total,
        unproved_commits=(current.manifest.unproved_commits if current else 0) + record.unproved_commits,
        commits_by_files=(current.manifest.commits_by_files if current else 0) + record.commits_by_files,
        long_values=longest(current.manifest.long_values if current else {}, record.long_values),
        entries=entries,
    )


def _commit(table: TableName, manifest: Manifest, current: VersionedManifest | None) -> Steps[None]:
    """Commit. After a refused request or an unknown outcome, the manifest's attempt id decides. Raises LostRace."""
    try:
        yield from put_manifest(table, manifest, current.etag if current else None)
    except (PathExists, PathChanged, PathMissing, UnknownOutcome):
        found = yield from read_manifest(table)
        if found is None or found.manifest.attempt != manifest.attempt:
            raise LOST_RACE(table=str(table), key=str(manifest.slice)) from None
