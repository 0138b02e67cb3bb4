"""Calls Delta's private `CDCReader`, which reads change feeds with vectorised scans of the files that commits name.

`has_own_reader` allows it only with a Delta version on which tests compare it with the public reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from mirror_assets.encode.private.jvm import Jvm, items
from mirror_assets.encode.private.table_version import TableVersion


@dataclass(frozen=True)
class SparkCommit:
    """A commit's version, and its actions as a Scala sequence."""

    version: int
    actions: JavaObject


@dataclass(frozen=True)
class CdcReader:
    """Reads commits `first` to `last` of a table in the schema of the opened version."""

    table: TableVersion
    first: int
    last: int

    def changes(self, *, coarse: bool = False) -> DataFrame:
        """Return the change feed; `coarse` derives it from added and removed data files, for tables without a feed."""
        jvm, table = self._jvm, self.table
        frame = self._reader.changesToBatchDF(
            table.log, self.first, self.last, jvm.session, jvm.none, jvm.some(table.snapshot), coarse, jvm.none
        )
        return jvm.frame(frame)

    def commits(self) -> Iterator[SparkCommit]:
        """Yield each commit with its actions from the Delta log."""
        return (SparkCommit(commit._1(), commit._2()) for commit in items(self._logged))  # noqa: SLF001 Scala's names

    def changes_by(self, actions: Sequence[JavaObject]) -> DataFrame:
        """Return the change feed for these actions, one sequence per commit, instead of those in the Delta log."""
        jvm = self._jvm
        identity = getattr(jvm.singleton(jvm.root.scala, "Predef"), "$conforms")()
        versions = self._logged.unzip(identity)._1()  # noqa: SLF001 Scala's name; Python can't make Scala's longs
        given = versions.zip(jvm.sequence(jvm.java_list(actions))).iterator()
        info = self._reader.changesToDF(
            self.table.snapshot,
            self.first,
            self.last,
            given,
            jvm.session,
            jvm.none,
            False,  # noqa: FBT003 isStreaming; py4j has no keyword arguments
            False,  # noqa: FBT003 useCoarseGrainedCDC
            jvm.none,
        )
        return jvm.frame(info.fileChangeDf())

    def rows_of_vectors(self, files: Sequence[JavaObject]) -> DataFrame:
        """Return the rows that the files' deletion vectors name; their `_commit_version` is the index of the file."""
        jvm, table = self._jvm, self.table
        added = getattr(jvm.delta.commands.cdc, "CDCReader$CDCDataSpec")
        numbered = (
            added(number, None, jvm.sequence(jvm.java_list([file])), jvm.none) for number, file in enumerate(files)
        )
        named_only = jvm.delta.RowIndexFilterType.IF_NOT_CONTAINED
        filters = jvm.scala_map({file.path(): named_only for file in files})
        index = jvm.delta.files.CdcAddFileIndex(
            jvm.session,
            jvm.sequence(jvm.java_list(numbered)),
            table.log,
            table.log.dataPath(),
            table.snapshot,
            jvm.some(filters),
        )
        return jvm.frame(self._reader.scanIndex(jvm.session, index, False))  # noqa: FBT003 as above

    def written(self) -> Mapping[int, JavaObject]:
        """Return each commit file's modification time by version: the commit time without in-commit timestamps."""
        times = items(self._reader.getNonICTTimestampsByVersion(self.table.log, self.first, self.last))
        return {pair._1(): pair._2() for pair in times}  # noqa: SLF001 Scala's names

    @property
    def _jvm(self) -> Jvm:
        return self.table.jvm

    @cached_property
    def _reader(self) -> JavaObject:
        return self._jvm.singleton(self._jvm.delta.commands.cdc, "CDCReader")

    @cached_property
    def _logged(self) -> JavaObject:
        changes = self.table.log.getChanges(self.first, self.last, self._jvm.none, False)  # noqa: FBT003 as above
        return changes.toIndexedSeq()
