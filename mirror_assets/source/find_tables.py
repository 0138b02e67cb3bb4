"""The Delta tables below a folder of a store: every folder that holds a log, or those whose path is like a pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from pyarrow.fs import FileSelector, FileType

from mirror_assets.errors import SettingError
from mirror_assets.source.access import Access
from mirror_assets.source.errors import SourceUnreadable, leave_out_version
from mirror_assets.source.source_files import has_folder, remote_files
from mirror_assets.source.storage_errors import translated

_LOG = "_delta_log"
_THREADS = 16
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ON_DISK = re.compile(r"file:/+")


@dataclass(frozen=True, order=True)
class FoundTable:
    """A folder that holds a Delta log, by its path below the root; that of the root itself is empty.

    `hindrance`: why the folder can't be listed, so that nobody knows whether it is a table; None of a table.
    """

    path: str
    hindrance: str | None = None


def find_tables(root: Access, depth: int = 3) -> tuple[FoundTable, ...]:
    """Return the tables at most `depth` folders below the root, in order of their paths.

    Folders whose name begins with `_` or `.` are left out, and so is what lies in a table's folder. Raises
    SourceUnreadable where the root can't be listed, and SourceUnavailable where the storage fails: then nobody knows
    which tables are gone. A store without folders has nothing at an address that is not there.
    """
    folders = _open(root)
    found: list[FoundTable] = []
    level: tuple[str, ...] = ("",)
    for deeper in range(depth, -1, -1):
        looks = folders.look(level, below=deeper > 0)
        found += (look.table for look in looks if look.table)
        level = tuple(child for look in looks for child in look.children)
    return tuple(sorted(found))


@dataclass(frozen=True)
class MatchedFolders:
    """The folders whose path below the root is like a pattern, ascending, and those that can't be listed for it."""

    paths: tuple[str, ...]
    unlisted: tuple[FoundTable, ...] = ()


def match_folders(root: Access, pattern: str) -> MatchedFolders:
    """Return the folders at paths like the pattern, such as `*/` or `sales/*`; nobody looks whether they are tables.

    It is one listing for each folder on the way. A pattern's name matches one that begins with `_` or `.` only if it
    begins so itself. What lies in a table's folder is left out. Raises as `find_tables` does.
    """
    folders, unlisted = _open(root), list[FoundTable]()
    level: tuple[str, ...] = ("",)
    for name in filter(None, pattern.split("/")):
        below = list[str]()
        for path in level:
            try:
                names = folders.names(path)
            except SettingError as error:
                if not path:
                    raise
                unlisted.append(FoundTable(path, error.what))
                continue
            below += (_join(path, known) for known in names if _LOG not in names and _is_like(known, name))
        level = tuple(below)
    return MatchedFolders(tuple(sorted(level)), tuple(unlisted))


def _is_like(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (name[0] not in "_." or name[0] == pattern[0])


@dataclass(frozen=True)
class _Look:
    """What a folder is: a table, one that can't be listed, or one with these folders in it."""

    table: FoundTable | None = None
    children: tuple[str, ...] = ()


class _Folders(Protocol):
    def look(self, paths: Sequence[str], *, below: bool) -> Sequence[_Look]:
        """Look into each folder; at the folders in it only if those `below` matter."""
        ...

    def names(self, path: str) -> Sequence[str]:
        """Return the names of the folders in a folder. Raises SourceUnreadable and SourceUnavailable."""
        ...


def _open(root: Access) -> _Folders:
    on_disk = _ON_DISK.match(root.uri)
    if on_disk:
        return _LocalFolders(root.uri, Path("/", unquote(root.uri[on_disk.end() :])))
    return _StoreFolders(root) if _SCHEME.match(root.uri) else _LocalFolders(root.uri, Path(root.uri))


class _LocalFolders:
    """Folders of this machine."""

    def __init__(self, uri: str, root: Path) -> None:
        self._uri, self._root = uri, root

    def look(self, paths: Sequence[str], *, below: bool) -> list[_Look]:
        return [self._look(path, below=below) for path in paths]

    def names(self, path: str) -> list[str]:
        try:
            names = self._scan(path)
        except OSError as error:
            raise SourceUnreadable(str(self._root / path), error.strerror or str(error)) from error
        # Others are not UTF-8: no reader of Delta tables can name them.
        return [name for name in names if name.isascii() or name.encode(errors="replace").decode() == name]

    def _look(self, path: str, *, below: bool) -> _Look:
        try:
            names = self._scan(path)
        except OSError as error:
            if not path:
                hint = leave_out_version(self._uri) if isinstance(error, FileNotFoundError) else None
                raise SourceUnreadable(self._uri, error.strerror or str(error), hint) from error
            return _Look(FoundTable(path, error.strerror))
        if _LOG in names:
            return _Look(FoundTable(path))
        return _Look(children=tuple(_shown(path, names)) if below else ())

    def _scan(self, path: str) -> list[str]:
        with os.scandir(self._root / path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]


class _StoreFolders:
    """Folders of a store, asked for in threads: one request for each table, and only folders that are none are listed.

    A table's folder may hold many files.
    """

    def __init__(self, root: Access) -> None:
        self._uri = root.uri
        with translated(root.uri):
            self._system = remote_files(root.uri, root.storage_options())

    def look(self, paths: Sequence[str], *, below: bool) -> list[_Look]:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(partial(self._look, below=below), paths))

    def names(self, path: str) -> list[str]:
        with translated(self._uri):
            return self._folders(path)

    def _look(self, path: str, *, below: bool) -> _Look:
        try:
            with translated(self._uri):
                if has_folder(self._system, _join(path, _LOG)):
                    return _Look(FoundTable(path))
                return _Look(children=tuple(_shown(path, self._folders(path))) if below else ())
        except SettingError as error:
            if not path:
                raise
            return _Look(FoundTable(path, error.what))

    def _folders(self, path: str) -> list[str]:
        found = self._system.get_file_info(FileSelector(path, allow_not_found=True))
        return [info.base_name for info in found if info.type is FileType.Directory]


def _shown(path: str, names: Sequence[str]) -> Iterator[str]:
    return (_join(path, name) for name in sorted(names) if not name.startswith(("_", ".")))


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
