"""Real VACUUMs through Spark, at a time of the test's choosing: files are as old as the clock is ahead of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from mirror_assets.encode.jvm import Jvm

# By default, Spark would list a folder in thousands of tasks.
FOR_SMALL_TABLES = {
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


@contextmanager
def small_tables(spark: SparkSession, **more: str) -> Iterator[None]:
    """The session with settings for small tables, and `more` of Delta's own, for a while."""
    ours = FOR_SMALL_TABLES | {f"spark.databricks.delta.{name.replace('__', '.')}": more[name] for name in more}
    before = {name: spark.conf.get(name, None) for name in ours}
    for name, value in ours.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@dataclass(frozen=True)
class Lake:
    """A table that Spark works on."""

    spark: SparkSession
    path: Path

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the table."""
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{self.path}`"))

    def stored(self) -> set[str]:
        """Paths of all files but the log's, and Hadoop's checksums beside them, which come and go with them."""
        files = (file.relative_to(self.path) for file in self.path.rglob("*") if file.is_file())
        return {str(file) for file in files if file.parts[0] != "_delta_log" and file.suffix != ".crc"}

    def vacuum(self, now_ms: int, retain: str = "") -> set[str]:
        """VACUUM with Delta's clock at `now_ms`; the paths that it deleted."""
        before = self.stored()
        with self.clock(now_ms):
            self.sql(f"VACUUM {{t}} {retain}")
        return before - self.stored()

    def checkpoint(self, now_ms: int) -> None:
        """A checkpoint with Delta's clock at `now_ms`: it drops tombstones, and the log's cleanup takes commits."""
        with self.clock(now_ms) as log:
            log.checkpoint()

    @contextmanager
    def clock(self, now_ms: int) -> Iterator[JavaObject]:
        """Delta takes this as the time of this table: its cached log has a clock of its own."""
        jvm = Jvm(self.spark)
        logs = jvm.root.org.apache.spark.sql.delta.DeltaLog
        logs.clearCache()
        clock = jvm.root.org.apache.spark.util.ManualClock(now_ms)
        yield logs.forTable(jvm.session, jvm.root.org.apache.hadoop.fs.Path(str(self.path)), clock)
        logs.clearCache()
