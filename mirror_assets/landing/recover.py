"""Recovery, the start of every publication: land committed files, delete slices that can't be committed any more."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.errors import UnknownOutcome
from mirror_assets.landing.errors import (
    EPOCH_ENDED,
    FOREIGN_FILE,
    LOST_RACE,
    MANIFEST_LOST,
    REBUILD_RUNNING,
    STAGED_FILE_LOST,
    TABLE_DROPPED,
)
from mirror_assets.landing.format import Entry, Manifest, SliceRecord, decode, encode
from mirror_assets.landing.generations import landed_numbers, list_history, range_path
from mirror_assets.landing.names import AttemptFolder, TableName
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep, read_rebuild, require_alive
from mirror_assets.landing.state import VersionedManifest, put_manifest, read_manifest
from mirror_assets.landing.steps import Create, DeleteTree, Head, ListFolder, Read, ReadReceipt, Rename, Steps
from mirror_assets.zones import PathChanged, PathExists, PathMissing

# A rename without a reply is repeated this often before the error is raised; the next publication redoes it.
_TRIES = 5


def recover(table: TableName, rebuild_epoch: int | None = None) -> Steps[VersionedManifest | None]:
    """Land all files of the manifest and return it, or None for a table that has landed nothing.

    While a rebuild runs, only the publisher with its `rebuild_epoch` passes, once the folder is dropped. A manifest of
    an earlier epoch is a late publisher's, and is ignored.

    Raises REBUILD_RUNNING, TABLE_DROPPED, EPOCH_ENDED, ManifestCorrupt, MANIFEST_LOST, STAGED_FILE_LOST, FOREIGN_FILE.
    """
    rebuild = yield from read_rebuild(table)
    epoch = _first_that_counts(rebuild, rebuild_epoch)
    current = yield from read_manifest(table)
    if current is None or current.manifest.epoch < epoch:
        if current is not None and rebuild is not None and rebuild.is_drop:
            raise EPOCH_ENDED(table=str(table), epoch=current.manifest.epoch)
        current = yield from _restore(table, epoch, rebuild)
    if current is not None:
        yield from redo(table, current.manifest)
    return current


def _first_that_counts(rebuild: RebuildRecord | None, rebuild_epoch: int | None) -> int:
    """Return the first epoch that has not ended. Raises REBUILD_RUNNING and TABLE_DROPPED if the caller must wait."""
    if rebuild is None or rebuild.step is RebuildStep.FINISHED:
        return 1
    if rebuild.step is RebuildStep.REMOVING:
        raise TABLE_DROPPED(table=rebuild.table, step=rebuild.step.value)
    if rebuild.is_running and (rebuild.epoch != rebuild_epoch or not rebuild.is_loading):
        raise REBUILD_RUNNING(table=rebuild.table, step=rebuild.step.value)
    return rebuild.epoch


def redo(table: TableName, manifest: Manifest) -> Steps[None]:
    """Land the files of a manifest that may be another publisher's, or have landed: two requests then."""
    is_kept = (yield from Head(table.history(manifest.epoch, manifest.generation))) is not None
    if is_kept and (not manifest.entries or (yield from _stands(table, manifest))):
        return
    yield from land(table, manifest)


def land(table: TableName, manifest: Manifest) -> Steps[None]:
    """Rename every committed file to its number, one after another: a gap would stop the replicator.

    Asks for nothing first: a publisher that has just committed has two requests less to wait for.
    """
    yield from _keep_history(table, manifest)
    for entry in manifest.entries:
        yield from _land(table, manifest, entry)


def list_attempts(table: TableName) -> Steps[list[AttemptFolder]]:
    """List the staged attempts, complete or not."""
    found = [AttemptFolder.parse(table, info.name) for info in (yield from ListFolder(table.scratch))]
    return [folder for folder in found if folder is not None]


def found_parts(record: SliceRecord) -> Steps[dict[str, str]]:
    """Return the ETag of each file in the folders of the record's parts, by path. Lists each folder once."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(record.folder.part(part.name).rpartition("/")[0] for part in record.parts):
        found |= {info.path: info.etag for info in (yield from ListFolder(folder))}
    return found


def collect(attempts: Sequence[AttemptFolder], manifest: Manifest) -> Steps[None]:
    """Delete attempts of generations up to the manifest's, which can't be committed any more (never by age).

    The caller lists them before it reads manifest and rebuild record: if another epoch had staged a slice by then, its
    rebuild record existed, and recovery refuses. Listed later, they could belong to a later epoch.
    """
    for folder in attempts:
        if folder.generation <= manifest.generation:
            yield from DeleteTree(folder.path)


def _stands(table: TableName, manifest: Manifest) -> Steps[bool]:
    """Whether the last committed file has landed, and so all before it: they land one after another.

    A rename keeps the ETag; if a store changes it, the footer decides.
    """
    entry = manifest.entries[-1]
    path = table.landing_file(entry.number)
    info = yield from Head(path)
    if info is None or info.etag == entry.etag:
        return info is not None
    try:
        return (yield from ReadReceipt(path)) == manifest.receipt
    except PathMissing:
        return False


def _has_landed(table: TableName, number: int) -> Steps[bool]:
    """Whether a file has landed under this number or a higher one: numbers only grow.

    The number itself comes first, because listing the folders of processed files may take long.
    """
    if (yield from Head(table.landing_file(number))) is not None:
        return True
    return max((yield from landed_numbers(table)), default=0) >= number


def _land(table: TableName, manifest: Manifest, entry: Entry) -> Steps[None]:
    target = table.landing_file(entry.number)
    unanswered = 0
    while True:
        try:
            yield from Rename(entry.staged, target, entry.etag)
        except (PathMissing, PathChanged):
            # Another publisher has moved it, or we have and the reply was lost: then it has landed.
            if not (yield from _has_landed(table, entry.number)):
                yield from _require_current(table, manifest)
                raise STAGED_FILE_LOST(table=str(table), staged=entry.staged, number=entry.number) from None
            return
        except PathExists:
            try:
                found = yield from ReadReceipt(target)
            except PathMissing:
                continue  # deleted meanwhile: the number is free again, or the replicator has moved our file
            if found != manifest.receipt:
                raise FOREIGN_FILE(table=str(table), path=target, why="its footer is not the committed one") from None
            return
        except UnknownOutcome:
            unanswered += 1
            if unanswered == _TRIES:
                raise
        else:
            return


def _require_current(table: TableName, manifest: Manifest) -> Steps[None]:
    """Raise if the folder was dropped since the manifest was read, which explains missing files."""
    yield from require_alive(table, manifest.epoch)
    current = yield from read_manifest(table)
    if current is None or current.manifest.epoch != manifest.epoch:
        raise LOST_RACE(table=str(table), key=str(manifest.slice))


def _keep_history(table: TableName, manifest: Manifest) -> Steps[None]:
    """Write the generation into the history before its files land, so that each landed file can be recognised."""
    try:
        yield from Create(table.history(manifest.epoch, manifest.generation), encode(manifest))
    except PathExists:
        return  # another publisher wrote it from the same manifest: a generation has only one


def _restore(table: TableName, epoch: int, rebuild: RebuildRecord | None) -> Steps[VersionedManifest | None]:
    """Restore a lost manifest from the newest generation in the history since `epoch`, if the landed files agree."""
    # In this order: a generation is in the history before its files land, so the later listing has the landed ones.
    highest = max((yield from landed_numbers(table)), default=0)
    kept = [one for one in (yield from list_history(table)) if one.epoch >= epoch]
    newest = max(kept, key=lambda one: (one.epoch, one.last), default=None)
    if newest is None or newest.is_roll_up:
        if highest or newest:
            yield from _require_same(table, rebuild)
            why = f"{highest} files have landed, but {table.history_folder} does not have the newest generation"
            raise MANIFEST_LOST(table=str(table), why=why)
        return None
    path = range_path(table, newest)
    content = yield from Read(path)
    if content is None:
        raise LOST_RACE(table=str(table), key="the newest")
    manifest = decode(Manifest, path, content.data)
    if highest >= manifest.next_number:
        yield from _require_same(table, rebuild)
        raise MANIFEST_LOST(
            table=str(table), why=f"file {highest} landed after the newest generation in {table.history_folder}"
        )
    try:
        yield from put_manifest(table, manifest, etag=None)
    except PathExists:
        pass  # another publisher restored the same bytes
    return (yield from read_manifest(table))


def _require_same(table: TableName, rebuild: RebuildRecord | None) -> Steps[None]:
    """Raise LostRace if a rebuild or drop has started since this record was read, which explains missing files."""
    if (yield from read_rebuild(table)) != rebuild:
        raise LOST_RACE(table=str(table), key="the newest")
