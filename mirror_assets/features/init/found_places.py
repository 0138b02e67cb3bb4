"""The places in which rules find tables: folders below the root of a store, or schemas of a Unity Catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.features.init.finding import FolderFacts, FolderKind, Listing
from mirror_assets.lakes.access import Access, PlainAccess
from mirror_assets.source.delta_rs import newest_metadata
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.find_folders import match_folders

# Threads that read logs; for a store, they mostly wait.
_THREADS = 16
# A scan is repeated soon. deltalake holds Python's lock while it lists HDFS, and Dagster ends a code server that does
# not respond for half a minute.
_SHORT = {"timeout": "10s", "max_retries": "1", "retry_timeout": "10s"}
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class Place:
    """A place that can be listed, and the meaning of the paths found there.

    `name` is a stable text, the key of its finding. `label` is the place's own name: the first part of the paths that
    patterns match. `address` returns the address of a path, and raises ValueError for a path without one. `listing`
    raises SettingError for a place that can't be read, and RetryError for one that does not respond.
    """

    name: str
    label: str
    address: Callable[[str], str]
    access: Callable[[str], Access]
    listing: Callable[[], Listing]

    def read(self, paths: Sequence[str]) -> dict[str, FolderFacts]:
        """Return the facts of these paths, except those whose store or catalog does not respond."""
        with ThreadPoolExecutor(_THREADS) as pool:
            facts = zip(paths, pool.map(self._facts, paths), strict=True)
            return {path: found for path, found in facts if found is not None}

    def _facts(self, path: str) -> FolderFacts | None:
        try:
            table = newest_metadata(brief_access(self.access(self.address(path))))
        except RetryError:
            return None
        except SourceNotDelta:
            return FolderFacts(kind=FolderKind.NOT_A_TABLE, why="it has no commits in `_delta_log`")
        except MirrorError as error:
            # Catalogs report views and tables of other formats with this code.
            kind = FolderKind.NOT_A_TABLE if error.code is ErrorCode.SOURCE_NOT_DELTA else FolderKind.UNREADABLE
            return FolderFacts(kind=kind, why=error.what)
        except ValueError as error:
            return FolderFacts(kind=FolderKind.UNREADABLE, why=str(error))
        return FolderFacts(
            kind=FolderKind.TABLE,
            table_id=table.table_id,
            feed=table.feed_enabled,
            row_tracking=table.row_tracking,
            columns=table.columns,
        )


def brief_access(access: Access) -> Access:
    """Return the access with short timeouts and the credentials that are valid now. Raises SettingError without any."""
    options = access.storage_options()
    return PlainAccess(access.uri, {**_SHORT, **options} if options else options)


def list_folders(root: Access, pattern: str) -> Listing:
    """Return the folders below a root at paths that match the pattern, such as `*` or `sales/*`.

    It sends one listing per parent folder. Raises SourceUnreadable and SourceUnavailable.
    """
    found = match_folders(brief_access(root), pattern)
    unlisted = {folder.path: folder.hindrance or "" for folder in found.unlisted}
    return Listing(found.paths, frozenset(found.parents), unlisted)


def list_catalog(schemas: Callable[[], Iterable[str]], names: Callable[[str], Iterable[str]], pattern: str) -> Listing:
    """Return the tables and views of a catalog as `<schema>/<name>`, in the schemas that match the pattern.

    `schemas` lists the catalog's schemas, and `names` the tables and views of one. They send one request per page. A
    schema that this identity may not list is in `unlisted`. Raises what they raise.
    """
    if not _WILDCARDS & set(pattern):
        return Listing(tuple(sorted(f"{pattern}/{name}" for name in names(pattern))), frozenset([pattern]))
    paths, parents, unlisted = list[str](), set[str](), dict[str, str]()
    for schema in schemas():
        if not fnmatchcase(schema, pattern):
            continue
        try:
            paths += [f"{schema}/{name}" for name in names(schema)]
            parents.add(schema)
        except SettingError as error:
            unlisted[schema] = error.what
    return Listing(tuple(sorted(paths)), frozenset(parents), unlisted)
