"""The rows that commits hide or show again by deletion vectors, each file read once for all of these commits.

Delta's own reader scans such a file twice for every commit: minutes for a hundred of them. The vectors alone tell which
rows differ, so one scan shows those of all commits, and a small table of row indices tells whose each is. Delta's
classes read and compare vectors; they are private (see `versions`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, quoted
from mirror_assets.encode.private.cdc_reader import CdcReader, LoggedCommit
from mirror_assets.encode.private.jvm import items
from mirror_assets.encode.private.table_version import Vectors

# py4j hands small numbers over as ints, which Spark won't take for longs.
_MARKS = "file INT, kind STRING, commit INT, time TIMESTAMP, rows ARRAY<LONG>"


def read_with_vectors(feed: CdcReader, versions: Collection[int]) -> DataFrame:
    """The change feed; of what only vectors change in the commits of these `versions`, each file is read once."""
    changes = _VectorChanges(feed)
    rest = [changes.take(commit) if commit.version in versions else commit.actions for commit in feed.commits()]
    frame = feed.changes_by(rest)
    return frame.union(changes.read()) if changes.files else frame


@dataclass
class _Actions:
    """A commit's actions: what it removes and adds by path, its own time if it has one, and the others."""

    removed: dict[str, JavaObject] = field(default_factory=dict)
    added: dict[str, JavaObject] = field(default_factory=dict)
    others: list[JavaObject] = field(default_factory=list)
    time_ms: int | None = None

    @classmethod
    def of(cls, commit: LoggedCommit) -> _Actions:
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
        """Paths of files that it removes and adds again."""
        return tuple(path for path in self.removed if path in self.added)

    @property
    def unpaired(self) -> list[JavaObject]:
        """Everything but these."""
        pairs = set(self.paired)
        files = (*self.removed.items(), *self.added.items())
        return [*self.others, *(action for path, action in files if path not in pairs)]


@dataclass(frozen=True)
class _File:
    """A data file, its place among all of them, and a bitmap of those of its rows that some commit changes."""

    number: int
    action: JavaObject
    changed: JavaObject


class _VectorChanges:
    """Collects what commits do to vectors of files, and reads the rows."""

    def __init__(self, feed: CdcReader) -> None:
        self.files: dict[str, _File] = {}
        self._feed, self._jvm, self._written = feed, feed.table.jvm, feed.written()
        self._vectors = Vectors.of(self._jvm, feed.table.log)
        self._marks = self._jvm.java_list()

    def take(self, commit: LoggedCommit) -> JavaObject:
        """The commit's actions without those that this collects."""
        actions = _Actions.of(commit)
        time = self._time(commit.version, actions.time_ms)
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
        """The rows in a feed's shape."""
        marked = (self._vectors.with_vector(file.action, file.changed) for file in self.files.values())
        found = self._feed.rows_of_vectors(list(marked))
        place = found.metadataColumn("_metadata").getField("row_index")  # also where a column has this name
        shown = found.withColumn(COMMIT_TIMESTAMP, place)
        marks = self._jvm.table(_MARKS, self._marks).withColumn("row", F.explode("rows"))
        is_its = (shown[COMMIT_VERSION] == marks["file"]) & (shown[COMMIT_TIMESTAMP] == marks["row"])
        told = {
            CHANGE_TYPE: marks["kind"],
            COMMIT_VERSION: marks["commit"] + F.lit(self._feed.first).cast("long"),
            COMMIT_TIMESTAMP: marks["time"],
        }
        values = (told[name].alias(name) if name in told else shown[quoted(name)] for name in found.columns)
        return shown.join(F.broadcast(marks), is_its).select(*values)

    def _file(self, path: str, action: JavaObject) -> _File:
        if path not in self.files:
            self.files[path] = _File(len(self.files), action, self._vectors.no_rows())
        return self.files[path]

    def _time(self, version: int, in_commit_ms: int | None) -> JavaObject:
        """When Delta says that the commit was made."""
        return self._written.get(version) if in_commit_ms is None else self._jvm.root.java.sql.Timestamp(in_commit_ms)
