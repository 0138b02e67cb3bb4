"""What a place lists: the folders below a root that match a pattern, or the tables of a catalog."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pyarrow.fs import FileSelector, FileType

from mirror_assets.errors import SettingError
from mirror_assets.lakes.access import Access
from mirror_assets.lakes.errors import SOURCE_UNREADABLE, SourceUnreadable
from mirror_assets.source.errors import leave_out_version
from mirror_assets.source.log_paths import local_folder
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import remote_files

if TYPE_CHECKING:
    from mirror_assets.lakes.unity import UnityClient

_LOG = "_delta_log"
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class Listing:
    """The paths of possible tables, ascending.

    `parents` are the folders that were listed for them (`""` is the root), and `unlisted` those that can't be listed,
    each with the reason. `tables` are the folders on the way that have a Delta log; nothing in them is listed.
    """

    paths: tuple[str, ...]
    parents: frozenset[str]
    unlisted: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()


def list_folders(root: Access, pattern: str, pool: Executor | None = None) -> Listing:
    """Return the folders below a root at paths that match the pattern, such as `*` or `sales/*`.

    Sends one listing per folder on the way. A pattern's name matches one that begins with `_` or `.` only if it begins
    so itself. Raises SourceUnreadable if the root can't be listed, and SOURCE_UNAVAILABLE if the store fails, because
    then no table can be reported as deleted. A store without folders has nothing at an address that does not exist.
    Discovery has no `pool`: at its end, a process waits for the threads of pools, and a listing may never return.
    """
    names_in = _names_in(root)

    def listed(path: str) -> list[str] | SourceUnreadable:
        try:
            return names_in(path)
        except SourceUnreadable as error:
            if not path:
                raise
            return error

    level, parents, tables, unlisted = [""], list[str](), list[str](), dict[str, str]()
    for wanted in pattern.split("/"):
        found = list(zip(level, pool.map(listed, level) if pool else map(listed, level), strict=True))
        level, parents = [], []
        for path, names in found:
            if isinstance(names, SourceUnreadable):
                unlisted[path] = names.why
                continue
            parents.append(path)
            if _LOG in names:
                tables.append(path)
                continue
            fitting = (name for name in names if fnmatchcase(name, wanted))
            level += [_join(path, name) for name in fitting if name[0] not in "_." or name[0] == wanted[0]]
    return Listing(tuple(sorted(level)), frozenset(parents), unlisted, tuple(sorted(tables)))


def _names_in(root: Access) -> Callable[[str], list[str]]:
    """Return the function that returns the names of the folders in a folder, on this machine or in a store.

    It raises SourceUnreadable and SOURCE_UNAVAILABLE.
    """
    local = local_folder(root.uri)
    if local is None:
        with translated(root.uri):
            store = remote_files(root.uri, root.storage_options())

        def in_store(path: str) -> list[str]:
            with translated(root.uri):
                found = store.get_file_info(FileSelector(path, allow_not_found=True))
            return [info.base_name for info in found if info.type is FileType.Directory]

        return in_store

    def on_disk(path: str) -> list[str]:
        try:
            with os.scandir(local / path) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
        except OSError as error:
            hint = leave_out_version(root.uri) if isinstance(error, FileNotFoundError) and not path else None
            raise SOURCE_UNREADABLE(
                uri=_join(root.uri, path), why=error.strerror or str(error), next_step=hint
            ) from error
        # No reader of Delta tables can open names that are not UTF-8.
        return [name for name in names if name.isascii() or name.encode(errors="replace").decode() == name]

    return on_disk


def _join(path: str, name: str) -> str:
    return "/".join(filter(None, (path, name)))


def list_catalog(client: UnityClient, pattern: str) -> Listing:
    """Return the tables and views of a catalog as `<schema>/<name>`, in the schemas that match the pattern.

    Sends one request per page. A schema that this identity may not list is in `unlisted`. Raises the client's errors.
    """
    if not _WILDCARDS & set(pattern):
        paths = [f"{pattern}/{table.name}" for table in client.tables(pattern)]
        return Listing(tuple(sorted(paths)), frozenset([pattern]))
    paths, parents, unlisted = [], set[str](), dict[str, str]()
    for schema in client.schemas():
        if not fnmatchcase(schema, pattern):
            continue
        try:
            paths += [f"{schema}/{table.name}" for table in client.tables(schema)]
            parents.add(schema)
        except SettingError as error:
            unlisted[schema] = error.what
    return Listing(tuple(sorted(paths)), frozenset(parents), unlisted)
