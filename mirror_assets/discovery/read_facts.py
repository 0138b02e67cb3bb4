"""Reads what found places are, side by side, and gives up early on a store that does not answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from mirror_assets.discovery.finding import FolderFacts, FolderKind
from mirror_assets.errors import ErrorCode, MirrorError, RetryError
from mirror_assets.source.access import Access
from mirror_assets.source.delta_rs import newest_metadata
from mirror_assets.source.errors import SourceNotDelta

# Logs are read remotely in threads: it is waiting for them.
_AT_ONCE = 16
# A scan is repeated soon. Where deltalake lists (HDFS), Python's lock is held, and Dagster ends a code server that does
# not answer for half a minute.
_SHORT = {"timeout": "10s", "max_retries": "1", "retry_timeout": "10s"}


def read_facts(paths: Sequence[str], access: Callable[[str], Access], *, remote: bool) -> dict[str, FolderFacts]:
    """Return the facts of the folders at the paths, except those whose store or catalog does not respond.

    `access` finds the way to a path. It may raise MirrorError, and ValueError where no address leads there.
    """
    one = partial(_facts, access)
    if not remote or len(paths) < 2:
        facts = [one(path) for path in paths]
    else:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            facts = list(pool.map(one, paths))
    return {path: found for path, found in zip(paths, facts, strict=True) if found is not None}


def _facts(access: Callable[[str], Access], path: str) -> FolderFacts | None:
    try:
        table = newest_metadata(Brief(access(path)))
    except RetryError:
        return None
    except SourceNotDelta:
        return FolderFacts(kind=FolderKind.NOT_A_TABLE, why="it has no commits in `_delta_log`")
    except MirrorError as error:
        # So a catalog says that it has a view, or a table of another format.
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


@dataclass(frozen=True)
class Brief:
    """A way to a table or folder that gives up early: a scan is repeated every minute."""

    of: Access

    @property
    def uri(self) -> str:
        """The address as deltalake takes it."""
        return self.of.uri

    def storage_options(self) -> Mapping[str, str]:
        """Return deltalake's options, with short patience."""
        options = self.of.storage_options()
        return {**_SHORT, **options} if options else options

    def elsewhere(self, uri: str) -> Access:
        """Return the way to another address, as brief."""
        return Brief(self.of.elsewhere(uri))
