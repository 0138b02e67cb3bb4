"""Delta's own reader of change feeds, `CDCReader`: vectorised scans of the files that commits name.

It is private: it is used only in a classic session and with the Delta version on which tests compare it with the public
one (see `versions`).
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
class LoggedCommit:
    """A commit's version, and its actions as a sequence of Scala's."""

    version: int
    actions: JavaObject


@dataclass(frozen=True)
class CdcReader:
    """Commits `first` to `last` of a table; rows are read in the schema of that version of it."""

    table: TableVersion
    first: int
    last: int

    def changes(self, *, coarse: bool = False) -> DataFrame:
        """Their change feed; `coarse`: from added and removed files alone, for tables without a feed."""
        jvm, table = self._jvm, self.table
        frame = self._reader.changesToBatchDF(
            table.log, self.first, self.last, jvm.session, jvm.none, jvm.some(table.snapshot), coarse, jvm.none
        )
        return jvm.frame(frame)

    def commits(self) -> Iterator[LoggedCommit]:
        """What the log says of each."""
        return (LoggedCommit(commit._1(), commit._2()) for commit in items(self._logged))  # noqa: SLF001 Scala's names

    def changes_by(self, actions: Sequence[JavaObject]) -> DataFrame:
        """The change feed that they would have with these actions, in place of what the log says of each."""
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
            False,  # noqa: FBT003 not a stream; py4j knows no keywords
            False,  # noqa: FBT003 nor coarse
            jvm.none,
        )
        return jvm.frame(info.fileChangeDf())

    def rows_of_vectors(self, files: Sequence[JavaObject]) -> DataFrame:
        """The rows that the files' vectors name, in a feed's shape; a file's place in the sequence is the version."""
        jvm, table = self._jvm, self.table
        numbered = (self._specification(number, file) for number, file in enumerate(files))
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
        """When each commit's file was written, which counts where it has no in-commit timestamp."""
        times = items(self._reader.getNonICTTimestampsByVersion(self.table.log, self.first, self.last))
        return {pair._1(): pair._2() for pair in times}  # noqa: SLF001 Scala's names

    def _specification(self, version: int, file: JavaObject) -> JavaObject:
        """The file as one that this version adds."""
        jvm = self._jvm
        made = getattr(jvm.delta.commands.cdc, "CDCReader$CDCDataSpec")
        return made(version, None, jvm.sequence(jvm.java_list([file])), jvm.none)

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
