"""Recovery, with which every publication starts: land what is committed, delete what can't be committed any more."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.errors import UnknownOutcome
from mirror_assets.landing.errors import (
    EpochEnded,
    ForeignFile,
    LostRace,
    ManifestLost,
    RebuildRunning,
    StagedFileLost,
    TableDropped,
)
from mirror_assets.landing.format import Entry, Manifest, decode, encode
from mirror_assets.landing.generations import range_path
from mirror_assets.landing.names import (
    PROCESSED,
    READY_TO_DELETE,
    AttemptFolder,
    HistoryRange,
    TableName,
    landing_number,
)
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep, read_rebuild, require_alive
from mirror_assets.landing.state import VersionedManifest, put_manifest, read_manifest
from mirror_assets.landing.steps import Create, DeleteTree, Rename, Steps, head, list_folder, read, receipt_of
from mirror_assets.storage import PathChanged, PathExists, PathMissing

# A rename without a reply is repeated this often before the error is raised; the next publication redoes it.
_TRIES = 5


def recover(table: TableName, rebuild_epoch: int | None = None) -> Steps[VersionedManifest | None]:
    """Land all files of the manifest and return it, or None for a table that has landed nothing.

    While a rebuild runs, only the publisher with its `rebuild_epoch` passes, once the folder is dropped. A manifest of
    an earlier epoch is a late publisher's, and is ignored.

    Raises RebuildRunning, TableDropped, EpochEnded, ManifestCorrupt, ManifestLost, StagedFileLost, ForeignFile.
    """
    rebuild = yield from read_rebuild(table)
    epoch = _first_that_counts(rebuild, rebuild_epoch)
    current = yield from read_manifest(table)
    if current is None or current.manifest.epoch < epoch:
        if current is not None and rebuild is not None and rebuild.is_drop:
            raise EpochEnded(str(table), current.manifest.epoch)
        current = yield from _restore(table, epoch, rebuild)
    if current is not None:
        yield from redo(table, current.manifest)
    return current


def _first_that_counts(rebuild: RebuildRecord | None, rebuild_epoch: int | None) -> int:
    """Return the first epoch that has not ended. Raises RebuildRunning and TableDropped when the caller must wait."""
    if rebuild is None or rebuild.step is RebuildStep.FINISHED:
        return 1
    if rebuild.step is RebuildStep.REMOVING:
        raise TableDropped(rebuild.table, rebuild.step.value)
    if rebuild.is_running and (rebuild.epoch != rebuild_epoch or not rebuild.is_loading):
        raise RebuildRunning(rebuild.table, rebuild.step.value)
    return rebuild.epoch


def redo(table: TableName, manifest: Manifest) -> Steps[None]:
    """Rename every committed file to its number, one after another: a gap would stop the replicator."""
    yield from _keep_history(table, manifest)
    if not manifest.entries or (yield from _stands(table, manifest)):
        return
    for entry in manifest.entries:
        yield from _land(table, manifest, entry)


def list_attempts(table: TableName) -> Steps[list[AttemptFolder]]:
    """List the staged attempts, complete or not."""
    found = [AttemptFolder.parse(table, info.name) for info in (yield from list_folder(table.scratch))]
    return [folder for folder in found if folder is not None]


def collect(attempts: Sequence[AttemptFolder], manifest: Manifest) -> Steps[None]:
    """Delete attempts of generations up to the manifest's, which can't be committed any more (never by age).

    The caller lists them before it reads manifest and rebuild record: when another epoch had staged something by then,
    its rebuild record was there, and recovery refuses. Listed later, they could belong to a later epoch.
    """
    for folder in attempts:
        if folder.generation <= manifest.generation:
            yield DeleteTree(folder.path)


def highest_landed(table: TableName) -> Steps[int]:
    """Return the highest landed number, in all folders that the replicator uses; 0 when there is none."""
    highest = 0
    for folder in (table.folder, f"{table.folder}/{PROCESSED}", f"{table.folder}/{READY_TO_DELETE}"):
        for info in (yield from list_folder(folder)):
            highest = max(highest, landing_number(info.name) or 0)
    return highest


def _stands(table: TableName, manifest: Manifest) -> Steps[bool]:
    """Whether the last committed file has landed, and so all before it: they land one after another.

    A rename keeps the ETag; where a store does not, the footer decides.
    """
    entry = manifest.entries[-1]
    path = table.landing_file(entry.number)
    info = yield from head(path)
    if info is None or info.etag == entry.etag:
        return info is not None
    try:
        return (yield from receipt_of(path)) == manifest.receipt
    except PathMissing:
        return False


def _has_landed(table: TableName, number: int) -> Steps[bool]:
    """Whether a file has landed under this number or a higher one: numbers only grow.

    The number itself comes first, because the folders of processed files may be long to list.
    """
    if (yield from head(table.landing_file(number))) is not None:
        return True
    return (yield from highest_landed(table)) >= number


def _land(table: TableName, manifest: Manifest, entry: Entry) -> Steps[None]:
    target = table.landing_file(entry.number)
    unanswered = 0
    while True:
        try:
            yield Rename(entry.staged, target, entry.etag)
        except (PathMissing, PathChanged):
            # It was moved: by another publisher, or by us and the reply was lost. Then it has landed.
            if not (yield from _has_landed(table, entry.number)):
                yield from _require_current(table, manifest)
                raise StagedFileLost(str(table), entry.staged, entry.number) from None
            return
        except PathExists:
            try:
                found = yield from receipt_of(target)
            except PathMissing:
                continue  # gone meanwhile: the number is free again, or the replicator has moved our file
            if found != manifest.receipt:
                raise ForeignFile(str(table), target, "its footer is not the committed one") from None
            return
        except UnknownOutcome:
            unanswered += 1
            if unanswered == _TRIES:
                raise
        else:
            return


def _require_current(table: TableName, manifest: Manifest) -> Steps[None]:
    """Raise when the folder was dropped since the manifest was read, which explains missing files."""
    yield from require_alive(table, manifest.epoch)
    current = yield from read_manifest(table)
    if current is None or current.manifest.epoch != manifest.epoch:
        raise LostRace(str(table), str(manifest.slice))


def _keep_history(table: TableName, manifest: Manifest) -> Steps[None]:
    """Write the generation into the history before its files land, so that each landed file can be recognised."""
    path = table.history(manifest.epoch, manifest.generation)
    if (yield from head(path)) is not None:
        return
    try:
        yield Create(path, encode(manifest))
    except PathExists:
        return  # written by another publisher from the same manifest: a generation has one


def _restore(table: TableName, epoch: int, rebuild: RebuildRecord | None) -> Steps[VersionedManifest | None]:
    """Restore a lost manifest from the newest generation in the history since `epoch`, if the landed files agree."""
    # In this order: a generation is in the history before its files land, so the later listing has those seen landed.
    highest = yield from highest_landed(table)
    folder = yield from list_folder(table.history_folder)
    ranges = (HistoryRange.parse(info.name) for info in folder)
    newest = max((kept for kept in ranges if kept is not None and kept.epoch >= epoch), key=_end_of, default=None)
    if newest is None or newest.is_roll_up:
        if highest or newest:
            yield from _require_same(table, rebuild)
            why = f"{highest} files have landed and no newest generation is kept in {table.history_folder}"
            raise ManifestLost(str(table), why)
        return None
    path = range_path(table, newest)
    content = yield from read(path)
    if content is None:
        raise LostRace(str(table), "the newest")
    manifest = decode(Manifest, path, content.data)
    if highest >= manifest.next_number:
        yield from _require_same(table, rebuild)
        raise ManifestLost(str(table), f"file {highest} landed after the newest kept generation")
    try:
        yield from put_manifest(table, manifest, etag=None)
    except PathExists:
        pass  # another publisher restored the same bytes
    return (yield from read_manifest(table))


def _end_of(kept: HistoryRange) -> tuple[int, int]:
    return kept.epoch, kept.last


def _require_same(table: TableName, rebuild: RebuildRecord | None) -> Steps[None]:
    """Raise LostRace when a rebuild or drop has started since this record was read, which explains missing files."""
    if (yield from read_rebuild(table)) != rebuild:
        raise LostRace(str(table), "the newest")
