"""Mirrors a lake while settings that decide bytes have other values, and prints what landed.

`python -m mirror_assets_tests.encode.hostile_settings` prints a table: each setting, a hostile value, the result with
this package's settings, and the result without them. `--each` flips each setting alone, otherwise each topic.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

from pyspark.sql import SparkSession

from mirror_assets.byte_settings import BYTE_SETTINGS, CONTEXT_SETTINGS, PINNED
from mirror_assets.encode import session
from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets.errors import MirrorError
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.encode.hostile_lake import HostileLake

Rows = Mapping[str, list[str]]
_MODULE = "mirror_assets_tests.encode.hostile_settings"
REFUSED = "refused"
# Hostile values that are not the other boolean.
_VALUES = {
    "spark.hadoop.fs.defaultFS": "hdfs://nowhere.invalid:8020",
    "spark.hadoop.parquet.read.bad.record.threshold": "0.9",
    "spark.hadoop.parquet.writer.version": "PARQUET_2_0",
    "spark.hadoop.parquet.summary.metadata.level": "ALL",
    "spark.hadoop.parquet.encryption.footer.key": "planted",
    "spark.hadoop.parquet.encryption.column.keys": "planted:id",
    "spark.hadoop.parquet.encryption.uniform.key": "planted",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.output.committer.class": "org.apache.hadoop.mapreduce.lib.output.BindingPathOutputCommitter",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.sources.useV1SourceList": "csv",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.columnNameOfCorruptRecord": "id",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.timeTravelVersionKey": "version",
    "spark.sql.timeTravelTimestampKey": "timestamp",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates",
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowPlan",
    "spark.databricks.delta.stalenessLimit": "1h",
    "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable": "latest",
    "spark.databricks.delta.v2.enableMode": "STRICT",
    "spark.hadoop.outputCommitCoordination.enabled": "false",
    "spark.hadoop.mapreduce.input.pathFilter.class": "org.apache.hadoop.mapred.OutputLogFilter",
}
# Settings that are not in the table, because they change speed only.
HARMLESS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.localShuffleReader.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.exchange.reuse": "false",
    "spark.sql.files.maxPartitionBytes": "4096",
    "spark.sql.files.maxRecordsPerFile": "3",
    "spark.sql.files.openCostInBytes": "1",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    "spark.sql.optimizer.inSetConversionThreshold": "1",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.sort.enableRadixSort": "false",
    "spark.sql.sources.fileCompressionFactor": "0.1",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "0",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.databricks.delta.stats.collect": "false",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.hadoop.parquet.page.size": "64",
    "spark.speculation": "true",
}


def hostile_values() -> dict[str, str]:
    """Return another legal value for each setting that decides bytes."""
    flipped = {"true": "false", "false": "true"}
    names = [*PINNED, *(setting.name for setting in CONTEXT_SETTINGS)]
    return {name: _VALUES.get(name) or flipped[PINNED[name]] for name in names}


def write_configuration(folder: Path, hostile: Mapping[str, str], hadoop: Mapping[str, str]) -> dict[str, str]:
    """Write spark-defaults.conf and core-site.xml, and return the variables that name their folders."""
    folder.mkdir()
    text = "".join(f"{name} {value}\n" for name, value in hostile.items())
    (folder / "spark-defaults.conf").write_text(text, encoding="utf-8")
    properties = (f"<property><name>{n}</name><value>{v}</value></property>" for n, v in hadoop.items())
    (folder / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>", encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder), "HADOOP_CONF_DIR": str(folder)}


def mirror_apart(lake: HostileLake, name: str, environment: Mapping[str, str]) -> Rows | str:
    """Mirror the lake in a process with these variables; return the landed rows, or the message of a refusal."""
    command = [sys.executable, "-m", _MODULE, "--mirror", str(lake.root), name]
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **quick_jvm.ENVIRONMENT, **environment}
    )
    if ended.returncode:
        raise AssertionError(ended.stdout[-3000:] + ended.stderr[-6000:])
    found: Rows | str = json.loads(ended.stdout.splitlines()[-1])
    return found


def on_foreign_context(lake: HostileLake, name: str, hostile: Mapping[str, str], *, pinned: bool = True) -> Rows | str:
    """Mirror the lake on a Spark context that was started with these settings; stop it afterwards.

    `pinned` is false to show what the settings would do without this package's.
    """
    builder = SparkSession.builder
    for setting, value in {**spark_settings({"spark.master": "local[2]"}), **hostile}.items():
        builder = builder.config(setting, value)
    context = builder.getOrCreate()
    try:
        if pinned:
            return _mirrored(lake, name)
        without = {setting: value for setting, value in PINNED.items() if setting not in hostile}
        with mock.patch.object(session, "PINNED", without), mock.patch.object(session, "CONTEXT_SETTINGS", ()):
            return _mirrored(lake, name)
    finally:
        context.stop()


def _mirrored(lake: HostileLake, name: str, *, compares: bool = False) -> Rows | str:
    """Return the landed rows, or the code and message of the error."""
    try:
        return lake.mirror(name, compares=compares)
    except MirrorError as error:
        return f"{error.code.value}: {error.what}"


def result(found: Rows | str, expected: Rows) -> str:
    """Return `equal`, `other rows`, or the message of the refusal."""
    if isinstance(found, str):
        return f"{REFUSED}: {found.partition(chr(10))[0][:150]}"
    same = all(found.get(table) == rows for table, rows in expected.items() if not table.endswith("compared"))
    return "equal" if same else "**other rows**"


def cases(*, each: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each topic, or each setting, with its hostile values."""
    hostile = hostile_values()
    groups = [(group.topic, list(group.values)) for group in BYTE_SETTINGS]
    groups += [(setting.name, [setting.name]) for setting in CONTEXT_SETTINGS]
    for topic, names in groups:
        if each:
            yield from ((name, {name: hostile[name]}) for name in names)
        else:
            yield topic, {name: hostile[name] for name in names}


def print_table(*, each: bool) -> None:
    """Print a row for each setting; the results are those of its topic, unless `each`."""
    with tempfile.TemporaryDirectory() as folder:
        lake = HostileLake(Path(folder))
        ordinary = open_session(spark_settings({"spark.master": "local[2]"}))
        lake.make(ordinary)
        expected = lake.mirror("ordinary")
        ordinary.stop()
        print("| setting | hostile value | with this package's settings | without them |\n| --- | --- | --- | --- |")
        for number, (_, hostile) in enumerate([*cases(each=each), ("speed only", HARMLESS)]):
            now = result(on_foreign_context(lake, f"now{number}", hostile), expected)
            before = result(on_foreign_context(lake, f"before{number}", hostile, pinned=False), expected)
            for name, value in hostile.items():
                print(f"| `{name}` | `{value}` | {now} | {before} |", flush=True)


def main() -> None:
    """Print the table, or mirror in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", action="store_true", help="flip each setting alone: hours")
    parser.add_argument("--mirror", nargs=2, metavar=("LAKE", "NAME"))
    chosen = parser.parse_args()
    if chosen.mirror:
        lake, name = chosen.mirror
        print(f"\n{json.dumps(_mirrored(HostileLake(Path(lake)), name))}")
    else:
        print_table(each=chosen.each)


if __name__ == "__main__":
    main()
