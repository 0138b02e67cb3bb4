"""Finds tables as folders: those below a root whose path is like a pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mirror_assets.discovery.finder import Listing
from mirror_assets.discovery.finding import FolderFacts, FolderKind
from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.source.access import Access
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.find_tables import match_folders
from mirror_assets.source.table_facts import table_facts

# Logs are read remotely in threads: it is waiting for them.
_AT_ONCE = 16
# A look is repeated soon. Where deltalake lists (HDFS), Python's lock is held, and Dagster ends a code server that does
# not answer for half a minute.
_SHORT = {"timeout": "10s", "max_retries": "1", "retry_timeout": "10s"}


@dataclass(frozen=True)
class FolderFinder:
    """The folders below `root` at a path like `pattern`, such as `*` or `sales/*`.

    `access` finds the way to an address, and `address` puts a path behind the root.
    """

    root: str
    pattern: str
    access: Callable[[str], Access]
    address: Callable[[str], str]

    @property
    def place(self) -> str:
        """The root and the pattern."""
        return f"{self.root} {self.pattern}"

    def listing(self) -> Listing:
        """Return the folders that match, by one listing for each folder on the way.

        Raises SourceUnreadable and SourceUnavailable.
        """
        found = match_folders(_Brief(self.access(self.root)), self.pattern)
        return Listing(found.paths, {folder.path: folder.hindrance or "" for folder in found.unlisted})

    def read(self, paths: Sequence[str]) -> dict[str, FolderFacts]:
        """Return what the folders are; one whose store does not answer is left out."""
        if "://" not in self.root or len(paths) < 2:
            facts = [self._facts(path) for path in paths]
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                facts = list(pool.map(self._facts, paths))
        return {path: found for path, found in zip(paths, facts, strict=True) if found is not None}

    def _facts(self, path: str) -> FolderFacts | None:
        try:
            table = table_facts(_Brief(self.access(self.address(path))))
        except SourceNotDelta:
            return FolderFacts(kind=FolderKind.NOT_A_TABLE)
        except RetryError:
            return None
        except MirrorError as error:
            return FolderFacts(kind=FolderKind.UNREADABLE, why=error.what)
        except ValueError as error:  # no address leads there
            return FolderFacts(kind=FolderKind.UNREADABLE, why=str(error))
        return FolderFacts(
            kind=FolderKind.TABLE,
            table_id=table.table_id,
            feed=table.feed_enabled,
            row_tracking=table.row_tracking,
            columns=table.columns,
        )


@dataclass(frozen=True)
class _Brief:
    """A way to a folder that gives up early: whoever looks every minute need not wait long."""

    of: Access

    @property
    def uri(self) -> str:
        return self.of.uri

    def storage_options(self) -> Mapping[str, str]:
        options = self.of.storage_options()
        return {**_SHORT, **options} if options else options

    def elsewhere(self, uri: str) -> Access:
        return _Brief(self.of.elsewhere(uri))
