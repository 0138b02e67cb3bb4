"""Makes the archive of classes with which later processes start Spark sooner."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.encode.changes import FeedSlice, encode_changes
from mirror_assets.encode.inserts import SnapshotSlice, encode_snapshot
from mirror_assets.encode.quick_start import QuickStart
from mirror_assets.encode.session import open_session
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.schema import LandedColumn

_COLUMNS = (LandedColumn("id", "bigint"), LandedColumn("text", "string"), LandedColumn("day", "date"))
_COMPRESSION, _FOOTER, _TARGET = "zstd", {"warm": "up"}, 1_000_000
_LIMIT_SECONDS = 600
_ENCODE = "encode"


def make_archive(settings: Mapping[str, str]) -> Path | None:
    """Make the archive of the classes that slices need; return None where no archive can be used.

    One process resolves the packages, if none has. Another one encodes small slices, and its JVM writes the archive.
    Raises CalledProcessError and TimeoutExpired.
    """
    quick = QuickStart.of(settings)
    if not quick.jars:
        _in_process(settings)
    archive = quick.archive
    if archive is None:
        return None
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / "new.jsa"
        _in_process(quick.recording(made), _ENCODE)
        # An older Java writes none.
        return made.replace(archive) if made.exists() else None


def encode_small_slices(spark: SparkSession, folder: str) -> None:
    """Encode a first load and changes, paired and unpaired, of a small table in this folder."""
    uri = f"{folder}/table"
    rows = spark.range(0, 100, 1, 1).selectExpr("id", "CAST(id AS STRING) AS text", "DATE'2026-01-31' AS day")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(uri)
    spark.sql(f"UPDATE delta.`{uri}` SET text = 'new' WHERE id < 50")  # noqa: S608 our own folder
    snapshot = SnapshotSlice(uri, 0, _COLUMNS, 1, _TARGET)
    encode_snapshot(spark, snapshot, f"{folder}/snapshot", _COMPRESSION, _FOOTER)
    for unpaired in (True, False):
        parts = (PartAssignment(1, 1, 1, unpaired),)
        changes = FeedSlice("warm.up", uri, 1, 1, ("id",), _COLUMNS, parts, _TARGET)
        encode_changes(spark, changes, f"{folder}/changes-{unpaired}", _COMPRESSION, _FOOTER)


def _in_process(settings: Mapping[str, str], *work: str) -> None:
    """Run `main` in a new process, with the settings on its input stream."""
    command = [sys.executable, "-m", __spec__.name, *work]
    subprocess.run(command, input=json.dumps(dict(settings)), text=True, check=True, timeout=_LIMIT_SECONDS)


def main(*work: str) -> None:
    """Start Spark with the settings on the input stream, encode if asked to, and wait until the JVM has ended."""
    spark = open_session(json.load(sys.stdin))
    jvm = spark.sparkContext._gateway.proc  # noqa: SLF001 there is no public way
    if _ENCODE in work:
        with tempfile.TemporaryDirectory() as folder:
            encode_small_slices(spark, folder)
    spark.stop()
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
