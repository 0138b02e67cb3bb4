"""The log of a history's table, read without a JVM: which commits of the source it covers, and by which commit.

And the context of a history: what planning and appending need besides.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from mirror_assets.features.history.errors import HISTORY_UNKNOWN, NO_HISTORY
from mirror_assets.lakes.access import Access, PlainAccess
from mirror_assets.source.batching import Limits
from mirror_assets.source.delta_rs import load_table
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import Point
from mirror_assets.source.read_errors import translated
from mirror_assets.source.source_files import SourceFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # planning and status start without loading it

# The application id of the history's transactions; their version is the generation.
APPLICATION = "mirror_assets/history"


class _Txn(TypedDict):
    appId: str
    version: int


class _CommitInfo(TypedDict, total=False):
    userMetadata: str
    operationMetrics: dict[str, str]


class _Line(TypedDict, total=False):
    txn: _Txn
    commitInfo: _CommitInfo


@dataclass(frozen=True)
class HistoryCommit:
    """One commit of the history's table: the feed of versions `first` to `last` of the source with this table id.

    Generations count up by one, and Delta commits each once; `attempt` identifies the run that did. A commit of no
    versions (`last` is `first` - 1) only repeats what is covered. `rows` is the number of rows written.
    """

    generation: int
    table_id: str
    first: int
    last: int
    attempt: str
    rows: int = 0

    @property
    def text(self) -> str:
        """The commit's user metadata, as JSON."""
        return json.dumps({"table_id": self.table_id, "first": self.first, "last": self.last, "attempt": self.attempt})


def parse_commit(commit: bytes) -> HistoryCommit | None:
    """Parse a commit file of the history's table; None for a commit of another writer."""
    lines: list[_Line] = [json.loads(text) for text in commit.splitlines() if text.strip()]
    generations = [line["txn"]["version"] for line in lines if "txn" in line and line["txn"]["appId"] == APPLICATION]
    info = next((line["commitInfo"] for line in lines if "commitInfo" in line), _CommitInfo())
    if not generations or "userMetadata" not in info:
        return None
    rows = int(info.get("operationMetrics", {}).get("numOutputRows", 0))
    return HistoryCommit(generations[0], rows=rows, **json.loads(info["userMetadata"]))


class HistoryLog:
    """The Delta log of one history; each call reads it again."""

    def __init__(self, table: str, uri: str, access: Access | None = None) -> None:
        """Take the name of the mirrored table, for messages, and the history's address and access."""
        self.table, self.uri = table, uri
        self._access = access or PlainAccess(uri)

    def newest(self) -> HistoryCommit | None:
        """Return the newest commit of the history, or None before its table exists.

        Raises NO_HISTORY for another Delta table, and HistoryUnknown when log cleanup has left only
        commits of other writers.
        """
        versions = self._versions()
        found = self._search(versions)
        if found is None and versions:
            with translated(self.uri):  # the table's state keeps it when log cleanup removes the commit
                generation = load_table(self._access).transaction_version(APPLICATION)
            if generation is None:
                raise NO_HISTORY(table=self.table, path=self.uri)
            raise HISTORY_UNKNOWN(table=self.table, path=self.uri, generation=generation)
        return found

    def commit(self, generation: int) -> HistoryCommit | None:
        """Return the commit of this generation, or None when the log does not have it."""
        found = self._search(self._versions(), generation)
        return found if found is not None and found.generation == generation else None

    def is_newest(self, kept: HistoryCommit) -> bool:
        """Return whether this is the newest commit of the table: no other writer has committed since."""
        newest = max(self._versions())
        data = self._files.commit(newest)
        return data is not None and parse_commit(data) == kept

    @cached_property
    def _files(self) -> SourceFiles:
        return SourceFiles(self.uri, self._access)

    def _versions(self) -> list[int]:
        return list(self._files.log().written)

    def _search(self, versions: list[int], at_most: int | None = None) -> HistoryCommit | None:
        """Search from the newest commit down for the newest generation, or the newest that is not above `at_most`."""
        for version in reversed(versions):
            data = self._files.commit(version)
            found = parse_commit(data) if data is not None else None
            if found is not None and (at_most is None or found.generation <= at_most):
                return found
        return None


@dataclass(frozen=True)
class HistoryContext:
    """A table's source, its history, the limits of a slice, and a Spark session that starts on its first call.

    With `stream` the feed is read by a Spark stream, else by one batch read per slice. A new history starts at `start`
    (None: at the first commit that can be read); with `snapshot`, with the table's rows as of then, if it had any.
    """

    table: str
    source: DeltaLog
    history: HistoryLog
    limits: Limits
    spark: Callable[[], SparkSession]
    stream: bool = False
    start: Point | None = None
    snapshot: bool = True
