"""A large slice of changes, and a first load: ours beside plain dumps, what people write by hand, and delta-rs."""

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
from benchmarks.result import Case, Goal, Outcome
from benchmarks.source import make_source
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.delta_reader import read_changes, read_version
from mirror_assets_tests.scans import scanned_changes

RAW, LIMIT, BY_HAND, DELTA_RS = "raw dump", "limit: vectorised dump", "by hand", "delta-rs: no order, no pairs"
STAGED, PUBLISHED, MIRRORED = "encode and stage", "encode and publish", "encode, check and publish"
COPY, SNAPSHOT = "plain copy", "snapshot: encode, check and publish"


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
            PUBLISHED: self.begun.in_copies(BenchTable.publish_unchecked),
            MIRRORED: self.begun.in_copies(BenchTable.land),
        }

    def snapshot_ways(self) -> dict[str, Callable[[int], None]]:
        """Ways to land the newest version as it is."""
        return {COPY: self._copy, SNAPSHOT: self._snapshot}

    def _dump(self, read: Callable[..., DataFrame], turn: int) -> None:
        self._write(read(self._spark, self.uri, 1, self.last), turn)

    def _copy(self, turn: int) -> None:
        self._write(read_version(self._spark, self.uri, self.last), turn)

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

    def _snapshot(self, turn: int) -> None:
        root = self.folder / f"snapshot-{turn}"
        BenchTable(self._spark, root, self.uri, "keys: [id]").land()
        shutil.rmtree(root)

    def _in_folder(self, land: Callable[[Path], None]) -> Callable[[int], None]:
        def run(turn: int) -> None:
            folder = self.folder / f"folder-{turn}"
            folder.mkdir()
            land(folder)
            shutil.rmtree(folder)

        return run


def run(bench: Bench) -> Outcome:
    """Measure both."""
    changes = Changes(bench, bench.size(400_000, 4_100_000))
    rows = changes.rows()
    slice_ = Case(f"{rows:,} feed rows", interleaved(bench.meter, changes.ways(), bench.rounds), RAW, rows)
    snapshot = Case("first load", interleaved(bench.meter, changes.snapshot_ways(), bench.rounds), COPY)
    checked = slice_.seconds(MIRRORED) - slice_.seconds(PUBLISHED)
    return Outcome(
        "changes",
        [slice_, snapshot],
        [
            Goal("encode and publish, of the raw dump", slice_.ratio(PUBLISHED), 0.6),
            Goal("encode and publish, of the limit", slice_.seconds(PUBLISHED) / slice_.seconds(LIMIT), 0.9),
            Goal("by hand, of encode and publish", slice_.seconds(BY_HAND) / slice_.seconds(PUBLISHED), 3, least=True),
            Goal("first load, of a plain copy", snapshot.ratio(SNAPSHOT), 1.1),
            Goal("checks, of encode and stage", checked / slice_.seconds(STAGED), 0.15),
        ],
    )
