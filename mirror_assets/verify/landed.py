"""Check a table folder: every committed file is there with its committed content, and nothing else is.

`file_continuity` reads all files. `incremental_continuity` reads only files that are new since the check last passed,
so a landing run costs the same at any age of the table. It compares with the last passed result, which both store in
the table folder: the checked generation, and the ETags of the files that waited then. If anything deviates, it runs the
whole check, which then reports the failure.

On OneLake, equal ETags mean equal content. On a local disk, an ETag is device, inode, size and modification time; it
misses a program that restores the old time, and disk errors. So the job of all checks and `mirror-assets check` read
every waiting file again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mirror_assets.landing.control_file import ControlFile, read_control_file, write_hint
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.generations import Generation, Verified, VerifiedFile
from mirror_assets.landing.metadata import declared_keys
from mirror_assets.landing.names import PROCESSED, READY_TO_DELETE, TableName, landing_number
from mirror_assets.landing.roll_up import KEPT
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.table_folder import (
    CheckedFolder,
    chain_problems,
    folder_problems,
    is_serviced,
    read_history,
    visible_files,
)
from mirror_assets.zones import Store

FILE_CONTINUITY = "file_continuity"
_METADATA_LIMIT = 1 << 20


def file_continuity(store: Store, table: TableName, applied: int | None) -> CheckResult:
    """Check that landing files have valid names in sequence and the committed content, and that the manifest agrees.

    Reads every waiting file and the whole kept history. `applied` is the number of the last file that the replicator
    has applied, None if unknown: files up to it may be gone.
    """
    current = drive(read_manifest(table), store)
    if current is None:
        waiting = visible_files(store.list(table.folder))
        stray = [f"{info.path} has landed without a manifest" for info in waiting]
        return CheckResult(FILE_CONTINUITY, tuple(stray), {"files": len(waiting)})
    generations, wrong = read_history(store, table, current.manifest)
    passed = _read_passed(store, table)
    finished = [info for name in (PROCESSED, READY_TO_DELETE) for info in store.list(f"{table.folder}/{name}")]
    listing = store.list(table.folder)
    folder = CheckedFolder(table, generations, visible_files(listing), tuple(finished), serviced=is_serviced(listing))
    problems = (*wrong, *folder_problems(store, folder, applied))
    return _result(store, current.manifest, folder, problems, passed)


def incremental_continuity(store: Store, table: TableName, applied: int | None) -> CheckResult:
    """Run `file_continuity` on what is new since it last passed; on everything if that is unknown or deviates."""
    current = drive(read_manifest(table), store)
    passed = _read_passed(store, table)
    if current is None or passed.record is None:
        return file_continuity(store, table, applied)
    manifest, verified = current.manifest, passed.record
    new = _new_generations(store, table, manifest, verified.generation)
    if new is None:
        return file_continuity(store, table, applied)
    listing = store.list(table.folder)
    folder = CheckedFolder(
        table,
        (verified.generation, *new),
        visible_files(listing),
        (),
        serviced=is_serviced(listing),
        verified={file.number: file.etag for file in verified.waiting},
    )
    problems = (*chain_problems(table, folder.generations), *folder_problems(store, folder, applied))
    return file_continuity(store, table, applied) if problems else _result(store, manifest, folder, (), passed)


def metadata_unchanged(store: Store, table: TableName, keys: Sequence[str]) -> CheckResult:
    """Check that `_metadata.json`, the manifest and mirror.yaml name the same keys: declared keys can't change.

    While no keys are declared, `_metadata.json` may lack those of mirror.yaml: the next slice declares them.
    """
    current = drive(read_manifest(table), store)
    if current is None:
        return CheckResult("metadata_unchanged")
    content = store.read(table.metadata, _METADATA_LIMIT) if store.head(table.metadata) else None
    found = declared_keys(content.data) if content else None
    first, problems = current.manifest.keys, []
    allowed = {first} if first else {first, tuple(keys)}
    if content is None:
        problems.append(f"{table.metadata} is missing")
    elif found is None:
        problems.append(f"{table.metadata} has no readable keyColumns")
    elif found not in allowed:
        problems.append(f"{table.metadata} declares {list(found)}, and {list(first)} was declared first")
    if tuple(keys) not in allowed:
        problems.append(f"mirror.yaml has keys {list(keys)}, and {list(first)} was declared first")
    return CheckResult("metadata_unchanged", tuple(problems), {"keys": ", ".join(first)})


def _result(
    store: Store, manifest: Manifest, folder: CheckedFolder, problems: Iterable[str], passed: ControlFile[Verified]
) -> CheckResult:
    """Return the result; if it passes, store it in place of the one that passed before."""
    found = tuple(dict.fromkeys(problems))
    if not found:
        _remember(store, folder, passed)
    metadata: dict[str, int | float | str] = {
        "files": len(folder.waiting),
        "next_number": manifest.next_number,
        "generations": manifest.generation,
    }
    return CheckResult(FILE_CONTINUITY, found, metadata)


def _read_passed(store: Store, table: TableName) -> ControlFile[Verified]:
    return drive(read_control_file(Verified, table.verified, is_hint=True), store)


def _new_generations(
    store: Store, table: TableName, manifest: Manifest, verified: Generation
) -> tuple[Generation, ...] | None:
    """Return the generations after the verified one, up to the manifest's; None if they are not all kept one by one."""
    count = manifest.generation - verified.generation
    same_epoch = (manifest.epoch, manifest.incarnation) == (verified.epoch, verified.incarnation)
    if not same_epoch or not 0 <= count <= KEPT:
        return None
    newest = Generation.of(manifest)
    if count == 0:
        return () if newest.model_copy(update={"files": ()}) == verified else None
    found = [
        drive(read_control_file(Manifest, table.history(manifest.epoch, number)), store).record
        for number in range(verified.generation + 1, manifest.generation + 1)
    ]
    kept = [one for one in found if one]
    return tuple(map(Generation.of, kept)) if len(kept) == count and kept[-1] == manifest else None


def _remember(store: Store, folder: CheckedFolder, before: ControlFile[Verified]) -> None:
    """Store the folder's newest generation and waiting files as the last passed result, in place of the one before."""
    waiting = [(landing_number(info.name), info.etag) for info in folder.waiting]
    verified = Verified(
        generation=folder.generations[-1].model_copy(update={"files": ()}),
        waiting=tuple(VerifiedFile(number=number, etag=etag) for number, etag in waiting if number),
    )
    if before.record == verified:
        return
    write_hint(before, verified, store)
