"""The Delta tables below a folder of a store: every folder that has a log, or those whose path matches a pattern."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from pyarrow.fs import FileSelector, FileType

from mirror_assets.lakes.access import Access
from mirror_assets.lakes.errors import SOURCE_UNREADABLE, SourceUnreadable
from mirror_assets.source.errors import leave_out_version
from mirror_assets.source.log_paths import local_folder
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import has_folder, remote_files

_LOG = "_delta_log"
_THREADS = 16


@dataclass(frozen=True, order=True)
class FoundTable:
    """A folder that has a Delta log, by its path below the root; that of the root itself is empty.

    `hindrance`: why the folder can't be listed, so that it is unknown whether it is a table; None of a table.
    """

    path: str
    hindrance: str | None = None


def find_tables(root: Access, depth: int = 3) -> tuple[FoundTable, ...]:
    """Return the tables at most `depth` folders below the root, in order of their paths.

    Folders whose name begins with `_` or `.` are left out, and so are tables in a table's folder. Raises
    SourceUnreadable if the root can't be listed, and SOURCE_UNAVAILABLE if the store fails, because then no table can
    be reported as deleted. A store without folders has nothing at an address that does not exist.
    """
    folders = _Folders(root)
    found: list[FoundTable] = []
    level = [""]
    for deeper in range(depth, -1, -1):
        with ThreadPoolExecutor(_THREADS) as pool:
            scans = list(pool.map(partial(folders.scan, below=deeper > 0), level))
        found += (scan for scan in scans if isinstance(scan, FoundTable))
        level = [child for scan in scans if not isinstance(scan, FoundTable) for child in scan]
    return tuple(sorted(found))


@dataclass(frozen=True)
class MatchedFolders:
    """The folders whose path below the root matches a pattern, ascending.

    `parents` are the folders that were listed for the last name of the pattern, and `unlisted` those that can't be.
    """

    paths: tuple[str, ...]
    parents: tuple[str, ...] = ()
    unlisted: tuple[FoundTable, ...] = ()


def match_folders(root: Access, pattern: str) -> MatchedFolders:
    """Return the folders whose paths match the pattern, such as `*/` or `sales/*`, whether they are tables or not.

    Takes one listing for each folder on the way. A pattern's name matches one that begins with `_` or `.` only if it
    begins so itself. Folders in a table's folder are left out. Raises as `find_tables` does.
    """
    folders, unlisted = _Folders(root), list[FoundTable]()
    level, parents = [""], list[str]()
    for name in filter(None, pattern.split("/")):
        below, parents = list[str](), []
        for path in level:
            try:
                names = folders.names(path)
            except SourceUnreadable as error:
                if not path:
                    raise
                unlisted.append(FoundTable(path, error.why))
                continue
            parents.append(path)
            if _LOG not in names:
                fitting = (known for known in names if fnmatchcase(known, name))
                below += (_join(path, known) for known in fitting if known[0] not in "_." or known[0] == name[0])
        level = below
    return MatchedFolders(tuple(sorted(level)), tuple(sorted(parents)), tuple(unlisted))


class _Folders:
    """The folders below a root, on this machine or in a store."""

    def __init__(self, root: Access) -> None:
        self._uri, self._local = root.uri, local_folder(root.uri)
        if self._local is None:
            with translated(root.uri):
                self._store = remote_files(root.uri, root.storage_options())

    def scan(self, path: str, *, below: bool) -> FoundTable | Sequence[str]:
        """Return the table at the path, or the paths of the folders in it that may be tables, if those `below` matter.

        A store is asked for the log first: it costs one request, and a table's folder may have many files.
        """
        try:
            if self._local is None:
                with translated(self._uri):
                    if has_folder(self._store, _join(path, _LOG)):
                        return FoundTable(path)
            names = self.names(path) if below or self._local else []
        except SourceUnreadable as error:
            if not path:
                raise
            return FoundTable(path, error.why)
        if _LOG in names:
            return FoundTable(path)
        return [_join(path, name) for name in names if below and not name.startswith(("_", "."))]

    def names(self, path: str) -> list[str]:
        """Return the names of the folders in a folder. Raises SourceUnreadable and SOURCE_UNAVAILABLE."""
        if self._local is None:
            with translated(self._uri):
                found = self._store.get_file_info(FileSelector(path, allow_not_found=True))
            return [info.base_name for info in found if info.type is FileType.Directory]
        try:
            with os.scandir(self._local / path) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
        except OSError as error:
            hint = leave_out_version(self._uri) if isinstance(error, FileNotFoundError) and not path else None
            raise SOURCE_UNREADABLE(
                uri=_join(self._uri, path), why=error.strerror or str(error), next_step=hint
            ) from error
        # No reader of Delta tables can open names that are not UTF-8.
        return [name for name in names if name.isascii() or name.encode(errors="replace").decode() == name]


def _join(path: str, name: str) -> str:
    return "/".join(filter(None, (path, name)))
