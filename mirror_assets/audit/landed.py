"""Checks on the table folder: what landed is what was committed, without a gap, and nothing else is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mirror_assets.audit.finding import Finding
from mirror_assets.landing.format import Entry, Manifest, SliceKind, is_next, load
from mirror_assets.landing.metadata import declared_keys
from mirror_assets.landing.names import (
    PROCESSED,
    READY_TO_DELETE,
    SliceKey,
    TableName,
    history_life,
    landing_name,
    landing_number,
)
from mirror_assets.landing.parts import count_markers, sha256
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import FileInfo, Store

_CONTROL_FILE_LIMIT = 1 << 20


@dataclass(frozen=True)
class _Folder:
    """A table folder as it is: its manifest, every kept generation, and the files that are there."""

    table: TableName
    manifest: Manifest | None
    generations: tuple[Manifest, ...]
    waiting: tuple[FileInfo, ...]
    finished: tuple[FileInfo, ...]
    serviced: bool

    @property
    def entries(self) -> dict[int, Entry]:
        """What was committed, by number."""
        return {entry.number: entry for generation in self.generations for entry in generation.entries}

    @property
    def keeps_etags(self) -> bool:
        """Whether any file still has the ETag that it was staged with."""
        etags = {number: entry.etag for number, entry in self.entries.items()}
        return any(info.etag == etags.get(landing_number(info.name) or 0) for info in self.waiting)

    def path(self, number: int) -> str:
        """The landing file's path."""
        return self.table.landing_file(number)


def file_continuity(store: Store, table: TableName, applied: int | None) -> Finding:
    """Landing files are valid names in sequence, each with the committed content, and the manifest agrees.

    `applied` is the last number the replicator has applied, or None when nobody knows: files up to it may be gone.
    """
    folder = _read_folder(store, table)
    if folder.manifest is None:
        stray = [f"{info.path} has landed without a manifest" for info in folder.waiting]
        return Finding("file_continuity", tuple(stray), {"files": len(folder.waiting)})
    problems = [
        *_generation_problems(folder),
        *_name_problems(folder),
        *_gap_problems(folder, applied),
        *_content_problems(store, folder),
    ]
    figures: dict[str, int | float | str] = {
        "files": len(folder.waiting),
        "next_number": folder.manifest.next_number,
        "generations": len(folder.generations),
    }
    return Finding("file_continuity", tuple(dict.fromkeys(problems)), figures)


def metadata_unchanged(store: Store, table: TableName, keys: Sequence[str]) -> Finding:
    """`_metadata.json` declares the keys of mirror.yaml and of the manifest: declared keys can't change.

    Where none were declared, those of mirror.yaml are with the next slice that lands.
    """
    standing = drive(read_manifest(table), store)
    if standing is None:
        return Finding("metadata_unchanged")
    content = store.read(table.metadata, _CONTROL_FILE_LIMIT) if store.head(table.metadata) else None
    found = declared_keys(content.data) if content else None
    first, problems = standing.manifest.keys, []
    allowed = {first} if first else {first, tuple(keys)}
    if content is None:
        problems.append(f"{table.metadata} is missing")
    elif found is None:
        problems.append(f"{table.metadata} has no readable keyColumns")
    elif found not in allowed:
        problems.append(f"{table.metadata} declares {list(found)}, and {list(first)} was declared first")
    if tuple(keys) not in allowed:
        problems.append(f"mirror.yaml has keys {list(keys)}, and {list(first)} was declared first")
    return Finding("metadata_unchanged", tuple(problems), {"keys": ", ".join(first)})


def _read_folder(store: Store, table: TableName) -> _Folder:
    standing = drive(read_manifest(table), store)
    generations = _kept(store, table, standing.manifest) if standing else {}
    finished = [info for name in (PROCESSED, READY_TO_DELETE) for info in store.list(f"{table.folder}/{name}")]
    listing = store.list(table.folder)
    return _Folder(
        table,
        manifest=standing.manifest if standing else None,
        generations=tuple(generations[number] for number in sorted(generations)),
        waiting=tuple(info for info in listing if not info.name.startswith("_")),
        finished=tuple(finished),
        serviced=any(info.name in (PROCESSED, READY_TO_DELETE) for info in listing),
    )


def _kept(store: Store, table: TableName, manifest: Manifest) -> dict[int, Manifest]:
    """Every generation of the manifest's life; what is there of another life came late and says nothing."""
    paths = [info.path for info in store.list(table.history_folder) if history_life(info.name) == manifest.life]
    kept = [loaded[0] for path in paths if (loaded := load(store, Manifest, path))]
    return {generation.generation: generation for generation in (manifest, *kept)}


def _generation_problems(folder: _Folder) -> list[str]:
    """Slices and numbers of the kept generations follow one another, up to the manifest."""
    problems = []
    for before, after in zip(folder.generations, folder.generations[1:], strict=False):
        if after.generation != before.generation + 1:
            problems.append(f"{folder.table.history(before.life, before.generation + 1)} is missing")
        elif after.first_number != before.next_number:
            problems.append(
                f"generation {after.generation} starts at file {after.first_number}, not {before.next_number}"
            )
        elif not is_next(SliceKey.parse(after.slice), after.chunk, before.loading):
            problems.append(f"generation {after.generation} does not go on with what was {before.loading}")
        elif after.kind is not SliceKind.SNAPSHOT and _first_version(after) != before.covered + 1:
            problems.append(f"slice {after.slice} does not follow version {before.covered}")
    newest = folder.generations[-1]
    if folder.manifest != newest:
        problems.append(f"{folder.table.manifest} is not the newest generation ({newest.generation})")
    if folder.generations[0].generation != 1:
        problems.append(f"{folder.table.history(newest.life, 1)} is missing")
    return problems


def _first_version(manifest: Manifest) -> int:
    return SliceKey.parse(manifest.slice).first


def _name_problems(folder: _Folder) -> list[str]:
    """Every visible file has a valid name, a committed number, and no twin among the finished files."""
    entries, finished = folder.entries, {info.name for info in folder.finished}
    problems = []
    for info in folder.waiting:
        number = landing_number(info.name)
        if info.is_folder or number is None:
            problems.append(f"{info.path} is no landing file: its name is not 20 digits and .parquet")
        elif number not in entries:
            problems.append(f"{info.path} was not published by this mirror")
        elif info.name in finished:
            problems.append(f"{info.path} is there twice: it was processed before")
    return problems


def _gap_problems(folder: _Folder, applied: int | None) -> list[str]:
    """No file is missing that the replicator still needs, nor the last one, which it always leaves."""
    present = {number for info in folder.waiting if (number := landing_number(info.name))}
    finished = {number for info in folder.finished if (number := landing_number(info.name))}
    last = max(folder.entries, default=0)
    problems = []
    for number in sorted(set(folder.entries) - present - finished):
        if not _consumed(folder, number, applied, min(present, default=last)):
            problems.append(f"{folder.path(number)} is missing, and the replicator has not applied it")
        elif number == last:
            problems.append(f"{folder.path(number)} is missing: the last file must stay")
    return problems


def _consumed(folder: _Folder, number: int, applied: int | None, lowest: int) -> bool:
    """Whether the service may have removed the file; without its status, its own folders show that it was here."""
    if applied is not None:
        return number <= applied
    return folder.serviced and number < lowest


def _content_problems(store: Store, folder: _Folder) -> list[str]:
    """Every file that waits has the size and the SHA-256 that were committed; a finished one the size."""
    entries = folder.entries
    problems = [
        f"{info.path} has {info.size} bytes, and {entry.bytes} were committed"
        for info in folder.finished
        if (entry := entries.get(landing_number(info.name) or 0)) and info.size != entry.bytes
    ]
    for info in folder.waiting:
        entry = entries.get(landing_number(info.name) or 0)
        if entry is None or info.is_folder:
            continue
        if info.size != entry.bytes:
            problems.append(f"{info.path} has {info.size} bytes, and {entry.bytes} were committed")
        elif not _is_committed(store, info, entry, folder):
            other = _belongs(store, info, entries)
            hint = f"; its content was committed as {landing_name(other)}" if other else ""
            problems.append(f"{info.path} does not have the content that was committed{hint}")
    return problems


def _is_committed(store: Store, info: FileInfo, entry: Entry, folder: _Folder) -> bool:
    """Whether the file is the entry's: on this machine by its SHA-256, elsewhere by its ETag.

    A store that kept no file's ETag when it was renamed can't be asked so: then what the file says of itself decides.
    """
    on_disk = store.local_path(info.path) is not None
    if not on_disk and info.etag == entry.etag:
        return True
    if entry.sha256 is not None:
        return sha256(store, info.path) == entry.sha256
    if folder.keeps_etags:
        return False
    receipts = [generation.receipt for generation in folder.generations if entry in generation.entries]
    return [read_receipt(store, info.path)] == receipts and count_markers(store, info.path) == entry.markers


def _belongs(store: Store, info: FileInfo, entries: dict[int, Entry]) -> int | None:
    """The number whose content this file has, for a file that was swapped."""
    digest = sha256(store, info.path)
    of_etag = (number for number, entry in entries.items() if info.etag == entry.etag)
    return next((number for number, entry in entries.items() if entry.sha256 == digest), next(of_etag, None))
