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

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

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
        waiting = _waiting(store.list(table.folder))
        stray = [f"{info.path} has landed without a manifest" for info in waiting]
        return CheckResult(FILE_CONTINUITY, tuple(stray), {"files": len(waiting)})
    listed = drive(list_history(table, current.manifest.epoch), store)
    passed = _read_passed(store, table)
    finished = {name: FinishedFiles.of(store.list(f"{table.folder}/{name}")) for name in (PROCESSED, READY_TO_DELETE)}
    listing = tuple(store.list(table.folder))
    committed, wrong = read_history(store, table, current.manifest, listed, _numbers(listing))
    folder = CheckedFolder(table, committed, listing, finished)
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
    listing, generations = tuple(store.list(table.folder)), (verified.generation, *new)
    folder = CheckedFolder(table, CommittedFiles(lambda: generations, _numbers(listing)), listing, {}, etags)
    problems = (
        *_foreign_files(folder, applied),
        *_chain_problems(table, pairwise(generations)),
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
            generation=folder.committed.newest.model_copy(update={"files": ()}),
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


Numbers = npt.NDArray[np.int64]


def _waiting(listing: Iterable[FileInfo]) -> tuple[FileInfo, ...]:
    """Return the files that Fabric reads: those without a leading underscore."""
    return tuple(info for info in listing if not info.name.startswith("_"))


def _numbers(listing: Iterable[FileInfo]) -> frozenset[int]:
    return frozenset(number for info in _waiting(listing) if (number := landing_number(info.name)))


@dataclass(frozen=True)
class FinishedFiles:
    """The landing files in one of Fabric's own subfolders: number and size, 16 bytes for each."""

    numbers: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, listing: Iterable[FileInfo]) -> FinishedFiles:
        """Return those of a listing; a number of more than 63 bits is another program's."""
        found = [(number, info.size) for info in listing if 0 < (number := landing_number(info.name) or 0) < 1 << 63]
        numbers, sizes = np.array(found, np.int64).reshape(-1, 2).T
        return cls(numbers, sizes)


class CommittedFiles:
    """The files of generations: number and size, 16 bytes for each, and all that was committed of those that wait.

    `generations` returns the generations each time that it is called; few are in memory at a time.
    """

    newest: Generation

    def __init__(self, generations: Callable[[], Iterable[Generation]], waiting: Collection[int]) -> None:
        """Read the generations once; `waiting` are the numbers of the waiting files."""
        self.generations = generations
        self.records: dict[int, list[tuple[CommittedFile, Generation]]] = {}
        numbers, sizes = array("q"), array("q")
        for generation in generations():
            self.newest = generation
            for file in generation.files:
                numbers.append(file.number)
                sizes.append(file.bytes)
                if file.number in waiting:
                    self.records.setdefault(file.number, []).append((file, generation))
        # Of two files with one number, the later one counts.
        self.numbers, last = np.unique(np.array(numbers, np.int64)[::-1], return_index=True)
        self._sizes = np.array(sizes, np.int64)[::-1][last]

    def sizes(self, numbers: Numbers) -> Numbers:
        """Return the committed sizes of these files; -1 for a number that was not committed."""
        if not len(self.numbers):
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self._sizes[at], -1)

    def file(self, number: int) -> CommittedFile | None:
        """Return the newest file with this number, if it waits."""
        return self.records[number][-1][0] if number in self.records else None


@dataclass(frozen=True)
class CheckedFolder:
    """The listing of a table folder, and its committed files.

    `finished` are the files that Fabric has moved into its own subfolders, by their names. `verified` has the ETags, by
    number, of waiting files that were checked before; their generations need not be among those of `committed`.
    """

    table: TableName
    committed: CommittedFiles
    listing: tuple[FileInfo, ...]
    finished: Mapping[str, FinishedFiles]
    verified: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def waiting(self) -> tuple[FileInfo, ...]:
        """The files that Fabric reads."""
        return _waiting(self.listing)

    @cached_property
    def expected(self) -> Numbers:
        """The numbers of all files that may be in the folder, ascending."""
        return np.union1d(self.committed.numbers, np.array([*self.verified], np.int64))

    @cached_property
    def finished_numbers(self) -> Numbers:
        """The numbers of all finished files."""
        return np.concatenate([np.zeros(0, np.int64), *(files.numbers for files in self.finished.values())])

    def is_expected(self, number: int) -> bool:
        """Whether a waiting file may have this number."""
        return number in self.committed.records or number in self.verified

    @cached_property
    def keeps_etags(self) -> bool:
        """Whether the store keeps ETags in a rename: some waiting file still has the ETag that it was staged with."""
        files = ((info, self.committed.file(landing_number(info.name) or 0)) for info in self.waiting)
        return any(file is not None and info.etag == file.etag for info, file in files)

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
        elif not folder.is_expected(number):
            is_applied = applied is not None and number <= applied
            yield f"{info.path} was not published by this mirror{', and was applied' if is_applied else ''}"


def _repeated_files(folder: CheckedFolder) -> Iterator[str]:
    """Require that no waiting file has the name of a finished one."""
    finished = {*_numbers(folder.waiting)}.intersection(folder.finished_numbers.tolist())
    for info in folder.waiting:
        number = landing_number(info.name) or 0
        if folder.is_expected(number) and number in finished:
            yield f"{info.path} is there twice: it was processed before"


def _gap_problems(folder: CheckedFolder, applied: int | None) -> Iterator[str]:
    """Require every file that the replicator still needs, and the last one, which it never removes."""
    present, last = _numbers(folder.waiting), int(folder.expected[-1]) if len(folder.expected) else 0
    waiting = np.array([number for number in present if folder.is_expected(number)], np.int64)
    there = np.concatenate([waiting, folder.finished_numbers])
    for number in map(int, np.setdiff1d(folder.expected, there)):
        path = folder.table.landing_file(number)
        if not folder.may_lack(number, applied, min(present, default=last)):
            yield f"{path} is missing, and the replicator has not applied it"
        elif number == last:
            yield f"{path} is missing: the last file must stay"


def _finished_problems(folder: CheckedFolder) -> Iterator[str]:
    """Require the committed size of every finished file."""
    for name, files in folder.finished.items():
        committed = folder.committed.sizes(files.numbers)
        for at in np.flatnonzero((committed >= 0) & (committed != files.sizes)):
            path = f"{folder.table.folder}/{name}/{landing_name(int(files.numbers[at]))}"
            yield f"{path} has {files.sizes[at]} bytes, and {committed[at]} were committed"


def _content_problems(store: Store, folder: CheckedFolder) -> Iterator[str]:
    """Require the committed size and content of every waiting file, unless it was verified and has the same ETag."""
    for info in folder.waiting:
        number = landing_number(info.name) or 0
        file = folder.committed.file(number)
        if info.is_folder or not folder.is_expected(number) or folder.verified.get(number) == info.etag:
            continue
        if file is None:
            yield f"{info.path} changed since it was last checked"
        elif info.size != file.bytes:
            yield f"{info.path} has {info.size} bytes, and {file.bytes} were committed"
        elif not _is_committed(store, info, file, folder):
            other = _belongs(store, info, folder.committed)
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
    receipts = [generation.receipt for one, generation in folder.committed.records[file.number] if one == file]
    return [read_receipt(store, info.path)] == receipts and count_markers(store, info.path) == file.markers


def _belongs(store: Store, info: FileInfo, committed: CommittedFiles) -> int | None:
    """Return the number under which this file's content was committed; None if under none."""
    digest, of_etag = sha256(store, info.path), None
    for file in (file for generation in committed.generations() for file in generation.files):
        if file.sha256 == digest:
            return file.number
        of_etag = file.number if of_etag is None and info.etag == file.etag else of_etag
    return of_etag


def read_history(
    store: Store, table: TableName, manifest: Manifest, listed: Sequence[HistoryRange], waiting: Collection[int]
) -> tuple[CommittedFiles, tuple[str, ...]]:
    """Return the files of the kept generations of the manifest's epoch, with its own, and the history's problems.

    `listed` is the history's listing, `waiting` the numbers of the waiting files. Raises ManifestCorrupt.
    """
    for _ in range(_LISTINGS):
        reader = HistoryReader(store, table, manifest, listed)
        found = CommittedFiles(reader.generations, waiting)
        if reader.is_whole:
            break  # else a publisher has just rolled up what was listed: list again
        listed = drive(list_history(table, manifest.epoch), store)
    return found, reader.problems


class HistoryReader:
    """Reads the kept generations of the manifest's epoch in order, one roll-up at a time, with the manifest's own.

    `problems` are those that the last reading found, and `is_whole` is False if a listed file was missing meanwhile.
    """

    def __init__(self, store: Store, table: TableName, manifest: Manifest, listed: Sequence[HistoryRange]) -> None:
        """Take the listing of the history; nothing is read yet."""
        self._store, self._table, self._manifest, self._listed = store, table, manifest, listed
        self.problems: tuple[str, ...] = ()
        self.is_whole = True

    def generations(self) -> Iterator[Generation]:
        """Yield the generations in order. Raises ManifestCorrupt."""
        self.is_whole, before = True, None
        rolled_up, chain = list[str](), list[str]()
        for generation in self._rolled(rolled_up):
            if before is not None and generation.generation != before.generation + 1:
                chain.clear()  # a late request may have put older files back
            elif before is not None:
                chain += _chain_problems(self._table, [(before, generation)])
            before = generation
            yield generation
        manifests = self._manifests()
        kept = {one.generation: one for one in map(Generation.of, (self._manifest, *manifests))}
        for number in sorted(kept):
            chain += _chain_problems(self._table, [(before, kept[number])] if before else ())
            before = kept[number]
            yield before
        self.problems = (*rolled_up, *chain, *self._end_problems(manifests))

    def _rolled(self, problems: list[str]) -> Iterator[Generation]:
        """Yield the generations of the roll-ups, and add the problems of the roll-ups to `problems`."""
        before: tuple[HistoryRange, str] | None = None
        for kept in (kept for kept in self._listed if kept.is_roll_up):
            path = range_path(self._table, kept)
            found = drive(read_control_file(RollUp, path), self._store)
            self.is_whole &= found.record is not None
            if found.record is None or found.content is None:
                continue
            if found.record.range != kept:
                problems.append(f"{path} holds generations {found.record.range.first} to {found.record.range.last}")
            if before and kept.first == before[0].last + 1 and found.record.before != before[1]:
                problems.append(f"{range_path(self._table, before[0])} is not what it was when {path} was written")
            before = kept, content_hash(found.content.data)
            yield from found.record.generations

    def _manifests(self) -> list[Manifest]:
        """Return the manifests after those of the roll-ups."""
        rolled, found = max((kept.last for kept in self._listed if kept.is_roll_up), default=0), list[Manifest]()
        for kept in self._listed:
            if not kept.is_roll_up and kept.last > rolled:
                one = drive(read_control_file(Manifest, range_path(self._table, kept)), self._store).record
                self.is_whole &= one is not None
                found += [one] if one else []
        return found

    def _end_problems(self, manifests: Sequence[Manifest]) -> Iterator[str]:
        newest = max((self._manifest, *manifests), key=lambda one: one.generation)
        kept = next((one for one in manifests if one.generation == newest.generation), newest)
        if self._manifest != kept:
            yield f"{self._table.manifest} is not the newest generation ({newest.generation})"
        if self._manifest.generation != 1 and not any(kept.first == 1 for kept in self._listed):
            yield f"{self._table.history(newest.epoch, 1)} is missing"


def _chain_problems(table: TableName, pairs: Iterable[tuple[Generation, Generation]]) -> Iterator[str]:
    """Yield why a generation does not follow the one before it: generation, file number, version or chunk."""
    for before, after in pairs:
        if after.generation != before.generation + 1:
            yield f"{table.history(before.epoch, before.generation + 1)} is missing"
        elif after.first_number != before.next_number:
            yield f"generation {after.generation} starts at file {after.first_number}, not {before.next_number}"
        elif not is_next(after.slice, after.chunk, before.loading):
            yield f"generation {after.generation} does not continue the snapshot, {before.loading}"
        elif after.kind is not SliceKind.SNAPSHOT and not continues(after.kind, after.slice, before.covered):
            yield f"slice {after.slice} does not follow version {before.covered}"
