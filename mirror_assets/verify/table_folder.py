"""A table folder as it is, and what is wrong with its files: names, gaps, content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mirror_assets.landing.history import Generation, LandedFile
from mirror_assets.landing.names import PROCESSED, READY_TO_DELETE, TableName, landing_name, landing_number
from mirror_assets.landing.parts import count_markers, sha256
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.storage import FileInfo, Store


@dataclass(frozen=True)
class TableFolder:
    """The files of a table folder and the generations that committed them.

    `waiting` are the visible files, `finished` those that the service has put aside; `serviced` says that it has put
    any aside. `verified` gives, by number, the ETag of files that waited and were looked at before; these need not be
    among the files of `generations`.
    """

    table: TableName
    generations: tuple[Generation, ...]
    waiting: tuple[FileInfo, ...]
    finished: tuple[FileInfo, ...]
    serviced: bool
    verified: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def files(self) -> dict[int, LandedFile]:
        """What the generations committed, by number."""
        return {file.number: file for generation in self.generations for file in generation.files}

    @cached_property
    def expected(self) -> set[int]:
        """The numbers that may be there."""
        return self.files.keys() | self.verified.keys()

    @cached_property
    def keeps_etags(self) -> bool:
        """Whether any file still has the ETag that it was staged with."""
        etags = {number: file.etag for number, file in self.files.items()}
        return any(info.etag == etags.get(landing_number(info.name) or 0) for info in self.waiting)

    def path(self, number: int) -> str:
        """The landing file's path."""
        return self.table.landing_file(number)


def visible_files(listing: Iterable[FileInfo]) -> tuple[FileInfo, ...]:
    """What Fabric would read of a table folder's listing."""
    return tuple(info for info in listing if not info.name.startswith("_"))


def is_serviced(listing: Iterable[FileInfo]) -> bool:
    """Whether the service has put files of the listed table folder aside."""
    return any(info.name in (PROCESSED, READY_TO_DELETE) for info in listing)


def folder_problems(store: Store, folder: TableFolder, applied: int | None) -> Iterator[str]:
    """What is wrong with the files; `applied` is the last number that was applied, or None when nobody knows."""
    yield from _name_problems(folder)
    yield from _gap_problems(folder, applied)
    yield from _finished_problems(folder)
    yield from _content_problems(store, folder)


def _name_problems(folder: TableFolder) -> Iterator[str]:
    """Every visible file has a valid name, a committed number, and no twin among the finished files."""
    finished = {info.name for info in folder.finished}
    for info in folder.waiting:
        number = landing_number(info.name)
        if info.is_folder or number is None:
            yield f"{info.path} is no landing file: its name is not 20 digits and .parquet"
        elif number not in folder.expected:
            yield f"{info.path} was not published by this mirror"
        elif info.name in finished:
            yield f"{info.path} is there twice: it was processed before"


def _gap_problems(folder: TableFolder, applied: int | None) -> Iterator[str]:
    """No file is missing that the replicator still needs, nor the last one, which it always leaves."""
    present = {number for info in folder.waiting if (number := landing_number(info.name))}
    finished = {number for info in folder.finished if (number := landing_number(info.name))}
    last = max(folder.expected, default=0)
    for number in sorted(folder.expected - present - finished):
        if not _consumed(folder, number, applied, min(present, default=last)):
            yield f"{folder.path(number)} is missing, and the replicator has not applied it"
        elif number == last:
            yield f"{folder.path(number)} is missing: the last file must stay"


def _consumed(folder: TableFolder, number: int, applied: int | None, lowest: int) -> bool:
    """Whether the service may have removed the file; without its status, its own folders show that it was here."""
    if applied is not None:
        return number <= applied
    return folder.serviced and number < lowest


def _finished_problems(folder: TableFolder) -> Iterator[str]:
    """Of a file that the service has put aside, the size is still the committed one."""
    for info in folder.finished:
        file = folder.files.get(landing_number(info.name) or 0)
        if file and info.size != file.bytes:
            yield f"{info.path} has {info.size} bytes, and {file.bytes} were committed"


def _content_problems(store: Store, folder: TableFolder) -> Iterator[str]:
    """Every file that waits has the committed size and content, or is still the one that was found to have them."""
    for info in folder.waiting:
        number = landing_number(info.name) or 0
        file = folder.files.get(number)
        if info.is_folder or number not in folder.expected or folder.verified.get(number) == info.etag:
            continue
        if file is None:
            yield f"{info.path} changed since it was looked at"
        elif info.size != file.bytes:
            yield f"{info.path} has {info.size} bytes, and {file.bytes} were committed"
        elif not _is_committed(store, info, file, folder):
            other = _belongs(store, info, folder.files)
            hint = f"; its content was committed as {landing_name(other)}" if other else ""
            yield f"{info.path} does not have the content that was committed{hint}"


def _is_committed(store: Store, info: FileInfo, file: LandedFile, folder: TableFolder) -> bool:
    """Whether the file is the committed one: on this machine by its SHA-256, elsewhere by its ETag.

    A store that kept no file's ETag when it was renamed can't be asked so: then what the file says of itself decides.
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


def _belongs(store: Store, info: FileInfo, files: Mapping[int, LandedFile]) -> int | None:
    """The number whose content this file has, for a file that was swapped."""
    digest = sha256(store, info.path)
    of_etag = (number for number, file in files.items() if info.etag == file.etag)
    return next((number for number, file in files.items() if file.sha256 == digest), next(of_etag, None))
