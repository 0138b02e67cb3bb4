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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from mirror_assets.landing.format import CommittedFile, Manifest, SliceKind, continues, is_next
from mirror_assets.landing.generations import (
    KEPT,
    Generation,
    RollUp,
    Verified,
    VerifiedFile,
    content_hash,
    list_history,
    range_path,
)
from mirror_assets.landing.metadata import declared_keys
from mirror_assets.landing.names import (
    PROCESSED,
    READY_TO_DELETE,
    HistoryRange,
    TableName,
    landing_name,
    landing_number,
)
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.landing.staged_parts import count_markers, sha256
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import ControlFile, drive, read_control_file, write_hint
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.zones import FileInfo, Store

FILE_CONTINUITY = "file_continuity"
# The next steps: for files of other programs, and for this mirror's own.
_MOVE = (
    "find out which program wrote the file that this mirror did not publish, and move it out of the table folder. "
    "Rebuild the table only if the file was applied."
)
RESTORE = "restore the file that the message names, or rebuild the table."
_METADATA_LIMIT = 1 << 20
_LISTINGS = 5


def file_continuity(store: Store, table: TableName, applied: int | None) -> CheckResult:
    """Check that landing files have valid names in sequence and the committed content, and that the manifest agrees.

    Reads every waiting file and the whole kept history. `applied` is the number of the last file that the replicator
    has applied, None if unknown: files up to it may be gone.
    """
    current = drive(read_manifest(table), store)
    if current is None:
        waiting = CheckedFolder(table, (), tuple(store.list(table.folder)), ()).waiting
        stray = [f"{info.path} has landed without a manifest" for info in waiting]
        return CheckResult(FILE_CONTINUITY, tuple(stray), {"files": len(waiting)})
    generations, wrong = read_history(store, table, current.manifest)
    passed = _read_passed(store, table)
    finished = [info for name in (PROCESSED, READY_TO_DELETE) for info in store.list(f"{table.folder}/{name}")]
    folder = CheckedFolder(table, generations, tuple(store.list(table.folder)), tuple(finished))
    foreign, problems = tuple(_foreign_files(folder, applied)), (*wrong, *_folder_problems(store, folder, applied))
    result = _result(store, current.manifest, folder, (*foreign, *problems), passed)
    if not foreign:
        return result
    return replace(result, next_step=f"{_MOVE} For the other files: {RESTORE}" if problems else _MOVE)


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
    etags = {file.number: file.etag for file in verified.waiting}
    folder = CheckedFolder(table, (verified.generation, *new), tuple(store.list(table.folder)), (), etags)
    problems = (
        *_foreign_files(folder, applied),
        *_chain_problems(table, folder.generations),
        *_folder_problems(store, folder, applied),
    )
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
    """Return the result; if it passes, store the newest generation and the waiting files in place of `passed`."""
    found = tuple(dict.fromkeys(problems))
    if not found:
        waiting = [(landing_number(info.name), info.etag) for info in folder.waiting]
        verified = Verified(
            generation=folder.generations[-1].model_copy(update={"files": ()}),
            waiting=tuple(VerifiedFile(number=number, etag=etag) for number, etag in waiting if number),
        )
        if passed.record != verified:
            write_hint(passed, verified, store)
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


@dataclass(frozen=True)
class CheckedFolder:
    """The listing of a table folder, and the generations that committed its files.

    `finished` are the files that Fabric has moved into its own subfolders. `verified` has the ETags, by number, of
    waiting files that were checked before; their generations need not be among `generations`.
    """

    table: TableName
    generations: tuple[Generation, ...]
    listing: tuple[FileInfo, ...]
    finished: tuple[FileInfo, ...]
    verified: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def waiting(self) -> tuple[FileInfo, ...]:
        """The files that Fabric reads: those without a leading underscore."""
        return tuple(info for info in self.listing if not info.name.startswith("_"))

    @cached_property
    def files(self) -> dict[int, CommittedFile]:
        """The committed files by number."""
        return {file.number: file for generation in self.generations for file in generation.files}

    @cached_property
    def expected(self) -> set[int]:
        """The numbers of all files that may be in the folder."""
        return self.files.keys() | self.verified.keys()

    @cached_property
    def keeps_etags(self) -> bool:
        """Whether the store keeps ETags in a rename: some waiting file still has the ETag that it was staged with."""
        etags = {number: file.etag for number, file in self.files.items()}
        return any(info.etag == etags.get(landing_number(info.name) or 0) for info in self.waiting)

    def may_lack(self, number: int, applied: int | None, lowest: int) -> bool:
        """Whether the replicator may have removed the file; if `applied` is unknown, its subfolders decide."""
        if applied is not None:
            return number <= applied
        return number < lowest and any(info.name in (PROCESSED, READY_TO_DELETE) for info in self.listing)


def _folder_problems(store: Store, folder: CheckedFolder, applied: int | None) -> Iterator[str]:
    """Yield problems of this mirror's files; `applied` is the number of the last applied file, None if unknown."""
    yield from _repeated_files(folder)
    yield from _gap_problems(folder, applied)
    yield from _finished_problems(folder)
    yield from _content_problems(store, folder)


def _foreign_files(folder: CheckedFolder, applied: int | None) -> Iterator[str]:
    """Yield a problem for each waiting file with an invalid name, or a number that was never committed."""
    for info in folder.waiting:
        number = landing_number(info.name)
        if info.is_folder or number is None:
            yield f"{info.path} was not published by this mirror: its name is not 20 digits and .parquet"
        elif number not in folder.expected:
            is_applied = applied is not None and number <= applied
            yield f"{info.path} was not published by this mirror{', and was applied' if is_applied else ''}"


def _repeated_files(folder: CheckedFolder) -> Iterator[str]:
    """Require that no waiting file has the name of a finished one."""
    finished = {info.name for info in folder.finished}
    for info in folder.waiting:
        if (landing_number(info.name) or 0) in folder.expected and info.name in finished:
            yield f"{info.path} is there twice: it was processed before"


def _gap_problems(folder: CheckedFolder, applied: int | None) -> Iterator[str]:
    """Require every file that the replicator still needs, and the last one, which it never removes."""
    present = {number for info in folder.waiting if (number := landing_number(info.name))}
    finished = {number for info in folder.finished if (number := landing_number(info.name))}
    last = max(folder.expected, default=0)
    for number in sorted(folder.expected - present - finished):
        path = folder.table.landing_file(number)
        if not folder.may_lack(number, applied, min(present, default=last)):
            yield f"{path} is missing, and the replicator has not applied it"
        elif number == last:
            yield f"{path} is missing: the last file must stay"


def _finished_problems(folder: CheckedFolder) -> Iterator[str]:
    """Require the committed size of every finished file."""
    for info in folder.finished:
        file = folder.files.get(landing_number(info.name) or 0)
        if file and info.size != file.bytes:
            yield f"{info.path} has {info.size} bytes, and {file.bytes} were committed"


def _content_problems(store: Store, folder: CheckedFolder) -> Iterator[str]:
    """Require the committed size and content of every waiting file, unless it was verified and has the same ETag."""
    for info in folder.waiting:
        number = landing_number(info.name) or 0
        file = folder.files.get(number)
        if info.is_folder or number not in folder.expected or folder.verified.get(number) == info.etag:
            continue
        if file is None:
            yield f"{info.path} changed since it was last checked"
        elif info.size != file.bytes:
            yield f"{info.path} has {info.size} bytes, and {file.bytes} were committed"
        elif not _is_committed(store, info, file, folder):
            other = _belongs(store, info, folder.files)
            hint = f"; its content was committed as {landing_name(other)}" if other else ""
            yield f"{info.path} does not have the content that was committed{hint}"


def _is_committed(store: Store, info: FileInfo, file: CommittedFile, folder: CheckedFolder) -> bool:
    """Whether the file has the committed content: by SHA-256 on a local disk, by ETag elsewhere.

    Where a rename changes ETags, the receipt in the file's footer and its rows by marker decide.
    """
    on_disk = store.local_path(info.path) is not None
    if not on_disk and info.etag == file.etag:
        return True
    if file.sha256 is not None:
        return sha256(store, info.path) == file.sha256
    if folder.keeps_etags:
        return False
    receipts = [generation.receipt for generation in folder.generations if file in generation.files]
    return [read_receipt(store, info.path)] == receipts and count_markers(store, info.path) == file.markers


def _belongs(store: Store, info: FileInfo, files: Mapping[int, CommittedFile]) -> int | None:
    """Return the number under which this file's content was committed; None if under none."""
    digest = sha256(store, info.path)
    of_etag = (number for number, file in files.items() if info.etag == file.etag)
    return next((number for number, file in files.items() if file.sha256 == digest), next(of_etag, None))


@dataclass(frozen=True)
class _Files:
    """The files of a history: roll-ups, each with its hash, and the manifests that follow them.

    `begins`: generation 1 is among them. `is_whole` is False if a listed file was missing when it was read.
    """

    roll_ups: tuple[tuple[HistoryRange, RollUp, str], ...]
    manifests: tuple[Manifest, ...]
    begins: bool
    is_whole: bool


def read_history(store: Store, table: TableName, manifest: Manifest) -> tuple[tuple[Generation, ...], tuple[str, ...]]:
    """Return the kept generations of the manifest's epoch in order, with its own, and their problems.

    Raises ManifestCorrupt.
    """
    for _ in range(_LISTINGS):
        files = _read(store, table, manifest.epoch)
        if files.is_whole:
            break  # else a publisher has just rolled up what was listed: list again
    rolled = [generation for _, found, _ in files.roll_ups for generation in found.generations]
    kept = {generation.generation: generation for generation in map(Generation.of, (manifest, *files.manifests))}
    newest = [kept[number] for number in sorted(kept)]
    problems = (
        *_roll_up_problems(table, files.roll_ups),
        *_chain_problems(table, [*_unbroken(rolled), *newest]),
        *_end_problems(table, manifest, files),
    )
    return (*rolled, *newest), problems


def _chain_problems(table: TableName, generations: Sequence[Generation]) -> Iterator[str]:
    """Yield why a generation does not follow the one before it: generation, file number, version or chunk."""
    for before, after in pairwise(generations):
        if after.generation != before.generation + 1:
            yield f"{table.history(before.epoch, before.generation + 1)} is missing"
        elif after.first_number != before.next_number:
            yield f"generation {after.generation} starts at file {after.first_number}, not {before.next_number}"
        elif not is_next(after.slice, after.chunk, before.loading):
            yield f"generation {after.generation} does not continue the snapshot, {before.loading}"
        elif after.kind is not SliceKind.SNAPSHOT and not continues(after.kind, after.slice, before.covered):
            yield f"slice {after.slice} does not follow version {before.covered}"


def _read(store: Store, table: TableName, epoch: int) -> _Files:
    listed = drive(list_history(table, epoch), store)
    roll_ups, manifests, is_whole = [], [], True
    rolled = max((kept.last for kept in listed if kept.is_roll_up), default=0)
    for kept in listed:
        path = range_path(table, kept)
        if kept.is_roll_up:
            found = drive(read_control_file(RollUp, path), store)
            is_whole &= found.record is not None
            if found.record and found.content:
                roll_ups.append((kept, found.record, content_hash(found.content.data)))
        elif kept.last > rolled:
            one = drive(read_control_file(Manifest, path), store).record
            is_whole &= one is not None
            manifests += [one] if one else []
    return _Files(tuple(roll_ups), tuple(manifests), any(kept.first == 1 for kept in listed), is_whole)


def _unbroken(rolled: Sequence[Generation]) -> Sequence[Generation]:
    """Return the generations after the last gap: a late request may have put older files back."""
    gaps = [index for index, (a, b) in enumerate(pairwise(rolled), 1) if b.generation != a.generation + 1]
    return rolled[gaps[-1] :] if gaps else rolled


def _roll_up_problems(table: TableName, roll_ups: Sequence[tuple[HistoryRange, RollUp, str]]) -> Iterator[str]:
    for kept, found, _ in roll_ups:
        if found.range != kept:
            yield f"{range_path(table, kept)} holds generations {found.range.first} to {found.range.last}"
    for (before, _, digest), (after, found, _) in pairwise(roll_ups):
        if after.first == before.last + 1 and found.before != digest:
            yield f"{range_path(table, before)} is not what it was when {range_path(table, after)} was written"


def _end_problems(table: TableName, manifest: Manifest, files: _Files) -> Iterator[str]:
    newest = max((manifest, *files.manifests), key=lambda one: one.generation)
    kept = next((one for one in files.manifests if one.generation == newest.generation), newest)
    if manifest != kept:
        yield f"{table.manifest} is not the newest generation ({newest.generation})"
    if manifest.generation != 1 and not files.begins:
        yield f"{table.history(newest.epoch, 1)} is missing"
