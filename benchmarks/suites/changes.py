"""A large slice of changes: ours beside plain dumps, what people write by hand, and delta-rs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.by_hand import land_by_hand
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.source import make_source
from mirror_assets.landing.format import SliceRecord
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.delta_reader import read_changes
from mirror_assets_tests.scans import scanned_changes

RAW, LIMIT, BY_HAND, DELTA_RS = "raw dump", "limit: vectorised dump", "by hand", "delta-rs: no order, no pairs"
STAGED, CHECKED = "encode and stage", "all checks"
PUBLISHED, MIRRORED = "encode and publish", "encode, check and publish"


class Changes:
    """One source whose commits behind version 0, which is empty, are landed in every way."""

    def __init__(self, bench: Bench, feed_rows: int) -> None:
        """Make the source, and land its version 0 once: what is measured starts from copies of that zone."""
        self._spark, self.folder = bench.spark, bench.folder / f"{feed_rows}"
        self.folder.mkdir()
        self.uri = make_source(bench.spark, self.folder, feed_rows)
        self.last = DeltaLog(self.uri).state().version
        self.begun = BenchTable(bench.spark, self.folder / "begun", self.uri, "keys: [id]")
        self.begun.begin(0)

    def rows(self) -> int:
        """Rows of the feed."""
        counted: int = scanned_changes(self._spark, self.uri, 1, self.last).count()
        return counted

    def ways(self) -> dict[str, Callable[[int], None]]:
        """Ways to land the changes."""
        return {
            RAW: partial(self._dump, read_changes),
            LIMIT: partial(self._dump, scanned_changes),
            BY_HAND: self._in_folder(partial(land_by_hand, self._spark, self.uri, "id", (1, self.last))),
            DELTA_RS: self._in_folder(self._by_delta_rs),
            STAGED: self.begun.in_copies(BenchTable.stage),
            CHECKED: self._staged_checks(),
            PUBLISHED: self.begun.in_copies(BenchTable.publish_unchecked),
            MIRRORED: self.begun.in_copies(BenchTable.land),
        }

    def _staged_checks(self) -> Callable[[int], None]:
        """All checks of a slice that is staged once, each time by a context that knows no result."""
        staged = self.begun.copied(self.folder / "staged")
        record = staged.stage()
        return lambda _: _check(staged, record)

    def _dump(self, read: Callable[..., DataFrame], turn: int) -> None:
        self._write(read(self._spark, self.uri, 1, self.last), turn)

    def _write(self, rows: DataFrame, turn: int) -> None:
        target = self.folder / f"dump-{turn}"
        rows.write.option("compression", "zstd").parquet(str(target))
        shutil.rmtree(target)

    def _by_delta_rs(self, folder: Path) -> None:
        feed = pa.RecordBatchReader.from_stream(
            DeltaTable(self.uri).load_cdf(starting_version=1, ending_version=self.last)
        )
        with pq.ParquetWriter(folder / "feed.parquet", feed.schema, compression="zstd") as file:
            for batch in feed:
                file.write_batch(batch)

    def _in_folder(self, land: Callable[[Path], None]) -> Callable[[int], None]:
        def run(turn: int) -> None:
            folder = self.folder / f"folder-{turn}"
            folder.mkdir()
            land(folder)
            shutil.rmtree(folder)

        return run


def _check(staged: BenchTable, record: SliceRecord) -> None:
    run_checks(staged.context(), record)


def run(bench: Bench) -> Outcome:
    """Measure all ways to land the slice."""
    changes = Changes(bench, bench.size(400_000, 4_100_000))
    rows = changes.rows()
    costs = interleaved(bench.meter, changes.ways(), bench.rounds)
    return Outcome("changes", [Case(f"{rows:,} feed rows", costs, RAW, rows, peers=(LIMIT, STAGED))])
