"""Counts the rows of a staged slice again, by reading what it was made from: decides where other counts disagree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION, projected
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.landing.format import SliceKind, SliceRecord
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.encode_slice import scan_of, versions_compared
from mirror_assets.pipeline.source_check import table_projection
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.projection import ALL_ROWS, Projection
from mirror_assets.source.scan import Scan
from mirror_assets.source.scan_builder import VersionPart, scan_differences
from mirror_assets.source.schema import parse_schema
from mirror_assets.verify.conservation import CountedRows, ScannedCounts

_PRE, _POST = "update_preimage", "update_postimage"


@dataclass(frozen=True)
class ScanCounter:
    """A RowCounter that reads the slice's scans."""

    context: TableContext
    record: SliceRecord

    def count(self) -> ScannedCounts:
        """Return the counts of one complete reading. Raises what reading the source raises."""
        record = self.record
        projection = table_projection(self.context.config, self.context.table, parse_schema(record.source_schema))
        with spark_errors(f"{record.table}, counting the rows of {self.context.source}"):
            read = self._counted(ALL_ROWS)
            return ScannedCounts(read, self._counted(projection) if projection.where else read)

    def _counted(self, projection: Projection) -> Mapping[int, CountedRows]:
        found: defaultdict[int, CountedRows] = defaultdict(CountedRows)
        for scan, is_new in self._scans():
            rows = projected(read_scan(self.context.spark(), scan), projection)
            for version, counted in _of_scan(rows, self.record.slice.last, is_new=is_new).items():
                found[version] += counted
        return found

    def _scans(self) -> list[tuple[Scan, bool | None]]:
        """Return the scans, each with whether its rows are new; None: each row says it."""
        record, key, log = self.record, self.record.slice, self.context.log
        versions = versions_compared(self.context.table, record) if record.kind is SliceKind.NET else None
        if versions is not None:
            commits = CommitRange(versions[0] + 1, versions[1], record.source_table_id)
            scans = scan_differences(log, commits)
            return [(scans.before, False), (scans.last, True)]
        commits, chunk = CommitRange(key.first, key.last, record.source_table_id), record.chunk
        part = VersionPart(chunk.first, chunk.end, table_id=record.source_table_id) if chunk else None
        is_new = None if record.kind in (SliceKind.CHANGES, SliceKind.NET) else True
        return [(scan_of(log, record.kind, commits, part), is_new)]


def _of_scan(rows: DataFrame, last: int, *, is_new: bool | None) -> dict[int, CountedRows]:
    """Count the rows of a scan by version; those of other scans than of change rows are of the version `last`."""
    if is_new is not None:
        total = int(rows.agg(F.count(F.lit(1))).collect()[0][0])
        return {last: CountedRows(new=total) if is_new else CountedRows(old=total)}
    found: dict[int, CountedRows] = {}
    for version, kind, count in rows.groupBy(COMMIT_VERSION, CHANGE_TYPE).count().collect():
        is_new_kind = kind in ("insert", _POST)
        one = CountedRows(
            new=count if is_new_kind else 0,
            old=0 if is_new_kind else count,
            preimages=count if kind == _PRE else 0,
            postimages=count if kind == _POST else 0,
        )
        found[version] = found.get(version, CountedRows()) + one
    return found
