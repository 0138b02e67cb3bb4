"""`file_continuity` of what is new since it last passed, so that a landing run costs the same at any age.

A verdict says what was in order and which files waited then, each by its ETag. What can have changed since is looked
at; wherever anything is not as expected, all is, so that a failure is always told by the whole check.

An ETag of OneLake stands for one content. On a local disk it is device, inode, size and modification time: it tells of
every program that writes, and not of one that sets the old time again, nor of a disk that decays. So the job of all
checks and `mirror-assets check` read every waiting file again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from mirror_assets.audit.finding import CheckResult
from mirror_assets.audit.kept_history import chain_problems
from mirror_assets.audit.landed import check_continuity, file_continuity
from mirror_assets.audit.table_folder import TableFolder, folder_problems, is_serviced, visible_files
from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import Manifest, decode, encode, load
from mirror_assets.landing.history import Generation, Verified, VerifiedFile
from mirror_assets.landing.names import TableName, landing_number
from mirror_assets.landing.roll_up import KEPT
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import CONTROL_FILE_LIMIT, drive
from mirror_assets.storage import PathChanged, PathExists, PathMissing, Store
from mirror_assets.storage.errors import RequestUnknown, StoreDenied

# A verdict only saves work: another check may have been ahead, and whoever may not write can still look.
_NOT_REMEMBERED = (PathExists, PathChanged, PathMissing, StoreDenied, RequestUnknown)


def continuity_since(store: Store, table: TableName, applied: int | None) -> CheckResult:
    """What `file_continuity` says; looks only at what is new since it last passed, if that is in order."""
    current = drive(read_manifest(table), store)
    known = _verdict(store, table)
    if current is None or known is None or known.verified is None:
        return continuity_of_all(store, table, applied)
    manifest, verified = current.manifest, known.verified
    new = _new_generations(store, table, manifest, verified.generation)
    if new is None:
        return continuity_of_all(store, table, applied)
    listing = store.list(table.folder)
    folder = TableFolder(
        table,
        (verified.generation, *new),
        visible_files(listing),
        (),
        serviced=is_serviced(listing),
        verified={file.number: file.etag for file in verified.waiting},
    )
    result = check_continuity(
        manifest, folder, (*chain_problems(table, folder.generations), *folder_problems(store, folder, applied))
    )
    if not result.passed:
        return continuity_of_all(store, table, applied)
    _remember(store, table, folder, known)
    return result


def continuity_of_all(store: Store, table: TableName, applied: int | None) -> CheckResult:
    """What `file_continuity` says of all that is there, remembered if it passes."""
    current = drive(read_manifest(table), store)
    waiting = visible_files(store.list(table.folder))
    result = file_continuity(store, table, applied)
    if current is not None and result.passed:
        folder = TableFolder(table, (Generation.of(current.manifest),), waiting, (), serviced=False)
        _remember(store, table, folder, _verdict(store, table))
    return result


@dataclass(frozen=True)
class _Verdict:
    """The newest verdict, None if it can't be read, with the ETag that a compare-and-swap needs."""

    verified: Verified | None
    etag: str


def _verdict(store: Store, table: TableName) -> _Verdict | None:
    try:
        content = store.read(table.verified, CONTROL_FILE_LIMIT)
    except PathMissing:
        return None
    try:
        return _Verdict(decode(Verified, table.verified, content.data), content.etag)
    except ManifestCorrupt:
        return _Verdict(None, content.etag)


def _new_generations(
    store: Store, table: TableName, manifest: Manifest, verified: Generation
) -> tuple[Generation, ...] | None:
    """The generations behind the verified one, up to the manifest's; None when they can't tell what is new."""
    count = manifest.generation - verified.generation
    same_epoch = (manifest.epoch, manifest.incarnation) == (verified.epoch, verified.incarnation)
    if not same_epoch or not 0 <= count <= KEPT:
        return None
    newest = Generation.of(manifest)
    if count == 0:
        return () if newest.model_copy(update={"files": ()}) == verified else None
    found = [
        load(store, Manifest, table.history(manifest.epoch, number))
        for number in range(verified.generation + 1, manifest.generation + 1)
    ]
    kept = [loaded[0] for loaded in found if loaded]
    return tuple(map(Generation.of, kept)) if len(kept) == count and kept[-1] == manifest else None


def _remember(store: Store, table: TableName, folder: TableFolder, known: _Verdict | None) -> None:
    """Keep what was found of the folder, in the place of the verdict that was known."""
    waiting = [(landing_number(info.name), info.etag) for info in folder.waiting]
    verified = Verified(
        generation=folder.generations[-1].model_copy(update={"files": ()}),
        waiting=tuple(VerifiedFile(number=number, etag=etag) for number, etag in waiting if number),
    )
    if known is not None and known.verified == verified:
        return
    with suppress(*_NOT_REMEMBERED):
        if known is None:
            store.create(table.verified, encode(verified))
        else:
            store.replace(table.verified, encode(verified), known.etag)
