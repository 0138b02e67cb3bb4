"""Reads the rows that commits delete or restore by deletion vectors, with one scan per data file for all commits.

Delta's CDCReader scans such a file twice for every commit, which takes minutes for a hundred commits. The vectors give
the changed row indices of each commit, so one scan reads the rows of all commits, and a join with a small table of row
indices assigns them to commits. Delta's private classes read and compare the vectors (see `has_own_reader`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from mirror_assets.encode.private.cdc_reader import CdcReader, SparkCommit
from mirror_assets.encode.private.jvm import items
from mirror_assets.encode.private.table_version import Vectors
from mirror_assets.source.sql_names import quoted

# py4j passes small numbers as ints, which Spark rejects in a BIGINT column.
_MARKS = "file INT, kind STRING, commit INT, time TIMESTAMP, rows ARRAY<LONG>"


def read_with_vectors(feed: CdcReader, versions: Collection[int]) -> DataFrame:
    """Return the change feed; changes of deletion vectors in the commits `versions` are read with one scan per file."""
    changes = _VectorChanges(feed)
    rest = [changes.take(commit) if commit.version in versions else commit.actions for commit in feed.commits()]
    frame = feed.changes_by(rest)
    return frame.union(changes.read()) if changes.files else frame


@dataclass
class _Actions:
    """A commit's actions: removed and added files by path, all others, and the in-commit timestamp if it has one."""

    removed: dict[str, JavaObject] = field(default_factory=dict)
    added: dict[str, JavaObject] = field(default_factory=dict)
    others: list[JavaObject] = field(default_factory=list)
    time_ms: int | None = None

    @classmethod
    def of(cls, commit: SparkCommit) -> _Actions:
        found = cls()
        files = {"RemoveFile": found.removed, "AddFile": found.added}
        for action in items(commit.actions):
            kind = action.productPrefix()
            if kind in files and action.dataChange():
                files[kind][action.path()] = action
            else:
                found.others.append(action)
            if kind == "CommitInfo" and action.inCommitTimestamp().isDefined():
                found.time_ms = action.inCommitTimestamp().get()
        return found

    @property
    def paired(self) -> tuple[str, ...]:
        """The paths of files that it removes and adds again."""
        return tuple(path for path in self.removed if path in self.added)

    @property
    def unpaired(self) -> list[JavaObject]:
        """All actions except those on the paths in `paired`."""
        pairs = set(self.paired)
        files = (*self.removed.items(), *self.added.items())
        return [*self.others, *(action for path, action in files if path not in pairs)]


@dataclass(frozen=True)
class _File:
    """A data file, its number among the collected ones, and a bitmap of the rows that any of the commits changes."""

    number: int
    action: JavaObject
    changed: JavaObject


class _VectorChanges:
    """Collects the changes that commits make to deletion vectors, and reads the changed rows."""

    def __init__(self, feed: CdcReader) -> None:
        self.files: dict[str, _File] = {}
        self._feed, self._jvm, self._written = feed, feed.table.jvm, feed.written()
        self._vectors = Vectors.of(self._jvm, feed.table.log)
        self._marks = self._jvm.java_list()

    def take(self, commit: SparkCommit) -> JavaObject:
        """Collect the commit's changes of deletion vectors; return its other actions."""
        actions = _Actions.of(commit)
        # A commit without an in-commit timestamp was made when its file was written.
        in_commit, written = actions.time_ms, self._written
        time = written.get(commit.version) if in_commit is None else self._jvm.root.java.sql.Timestamp(in_commit)
        for path in actions.paired:
            removed, added = actions.removed[path], actions.added[path]
            for kind, hides, shows in (("delete", added, removed), ("insert", removed, added)):
                rows = self._vectors.hidden_only_in(hides, shows)
                if rows is not None:
                    file = self._file(path, added)
                    file.changed.merge(rows)
                    mark = (file.number, kind, commit.version - self._feed.first, time, rows.toArray())
                    self._marks.add(self._jvm.row(mark))
        return self._jvm.sequence(self._jvm.java_list(actions.unpaired))

    def read(self) -> DataFrame:
        """Return the collected rows as change feed rows."""
        marked = (self._vectors.with_vector(file.action, file.changed) for file in self.files.values())
        found = self._feed.rows_of_vectors(list(marked))
        row_index = found.metadataColumn("_metadata").getField("row_index")  # safe if a column is called `_metadata`
        shown = found.withColumn(COMMIT_TIMESTAMP, row_index)
        marks = self._jvm.table(_MARKS, self._marks).withColumn("row", F.explode("rows"))
        is_same_row = (shown[COMMIT_VERSION] == marks["file"]) & (shown[COMMIT_TIMESTAMP] == marks["row"])
        from_marks = {
            CHANGE_TYPE: marks["kind"],
            COMMIT_VERSION: marks["commit"] + F.lit(self._feed.first).cast("long"),
            COMMIT_TIMESTAMP: marks["time"],
        }
        values = (from_marks[name].alias(name) if name in from_marks else shown[quoted(name)] for name in found.columns)
        return shown.join(F.broadcast(marks), is_same_row).select(*values)

    def _file(self, path: str, action: JavaObject) -> _File:
        if path not in self.files:
            self.files[path] = _File(len(self.files), action, self._vectors.no_rows())
        return self.files[path]
