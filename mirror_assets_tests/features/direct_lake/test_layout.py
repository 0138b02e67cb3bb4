"""Layouts of real tables, and summaries of sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.features.direct_lake.layout import (
    AdviceTopic,
    LayoutReport,
    PartitionSummary,
    SizeSummary,
    advice,
)
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.features.direct_lake.parquet_files import report


def _rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "p": [i % 3 if i % 7 else None for i in range(first, last)]})


def test_sizes_are_those_of_the_files_on_the_disk(tmp_path: Path) -> None:
    for first in (0, 100, 300):
        properties = WriterProperties(max_row_group_size=64)
        write_deltalake(tmp_path, _rows(first, first + 150), mode="append", writer_properties=properties)
    found = report(tmp_path)
    paths = [Path(uri.removeprefix("file://")) for uri in DeltaTable(tmp_path).file_uris()]
    groups = [pq.ParquetFile(path).metadata for path in paths]
    sizes = sorted(path.stat().st_size for path in paths)
    assert (found.files.count, found.files.total, found.files.middle) == (3, sum(sizes), sizes[1])
    assert (found.rows, found.version) == (450, 2)
    assert found.row_groups.count == sum(metadata.num_row_groups for metadata in groups)
    assert (found.row_groups.least, found.row_groups.middle, found.row_groups.most) == (22, 64, 64)
    assert found.files.small == 3
    assert dict(found.writers) == {groups[0].created_by: 3}
    assert sum(column.share for column in found.columns) == pytest.approx(100)


def test_partitions_are_summarised(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _rows(0, 90), partition_by=["p"])
    write_deltalake(tmp_path, _rows(0, 2), mode="append")
    found = report(tmp_path).partitions
    assert (found.columns, found.count, found.least_files, found.most_files) == (("p",), 4, 1, 2)
    sizes: dict[str | None, int] = {}
    for file in DeltaLog(str(tmp_path)).snapshot().files:
        sizes[file.partition["p"]] = sizes.get(file.partition["p"], 0) + file.bytes
    least, low, high, most = sorted(sizes.values())
    assert least < most
    assert found.skew == pytest.approx(most / ((low + high) / 2))


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_empty_text_and_null_are_two_partitions(tmp_path: Path, checkpoint: bool) -> None:
    """As Spark reads them."""
    write_deltalake(tmp_path, pa.table({"id": range(3), "p": ["", None, "a"]}), partition_by=["p"])
    if checkpoint:
        DeltaTable(tmp_path).create_checkpoint()
    found = report(tmp_path).partitions
    assert (found.count, found.least_files, found.most_files) == (3, 1, 1)


def test_an_empty_table(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, pa.schema([("id", pa.int64())]))
    found = report(tmp_path)
    assert (found.files.count, found.rows, found.columns, found.partitions.count) == (0, 0, (), 0)
    assert (found.vorder_percent, found.hidden_percent, found.row_groups.most) == (0, 0, 0)


def test_vorder_is_counted_file_by_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _rows(0, 30))
    marked = {"com.microsoft.parquet.vorder.enabled": "true"}
    write_deltalake(tmp_path, _rows(0, 10), mode="append")
    newest = max(tmp_path.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    size = newest.stat().st_size
    pq.write_table(pq.read_table(newest).replace_schema_metadata(marked), newest)
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{newest.stat().st_size}'))
    found = report(tmp_path)
    assert (found.vorder_files, found.vorder_percent) == (1, 25)


def test_a_mapped_table_with_dropped_columns_and_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "mapped")
    properties = "delta.columnMapping.mode = 'name', delta.enableDeletionVectors = true"
    spark.sql(
        f"CREATE TABLE delta.`{uri}` USING delta PARTITIONED BY (part) TBLPROPERTIES ({properties}) AS SELECT "
        "/*+ COALESCE(1) */ id, struct(int(id) x, int(id % 3) y) s, concat('n', id) gone, int(id % 2) part "
        "FROM range(200)"
    )
    spark.sql(f"ALTER TABLE delta.`{uri}` DROP COLUMNS (gone, s.y)")
    spark.sql(f"ALTER TABLE delta.`{uri}` RENAME COLUMN part TO side")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id < 12 AND side = 0")
    found = report(Path(uri))
    # Spark writes partition columns into the files of mapped tables also.
    assert {column.label for column in found.columns if not column.is_dropped} == {"id", "s.x", "side"}
    dropped = [column for column in found.columns if column.is_dropped]
    assert (len(dropped), {column.name for column in dropped}) == (2, {None})
    assert found.dropped_bytes == sum(column.compressed for column in dropped) > 0
    assert (found.partitions.columns, found.partitions.count) == (("side",), 2)
    assert (found.much_hidden_files, found.hidden_rows, found.hidden_percent) == (1, 6, 3)


_MB = 10**6


def _files(sizes: list[int]) -> SizeSummary:
    return SizeSummary.of(sizes, (25 * _MB, 2_000 * _MB))


def _groups(rows: list[int]) -> SizeSummary:
    return SizeSummary.of(rows, (_MB, 16 * _MB))


def test_a_size_at_a_limit_is_not_small_but_large() -> None:
    found = SizeSummary.of([9, 10, 19, 20], (10, 20))
    assert (found.small, found.small_total, found.large) == (1, 9, 1)


def _partitions(count: int) -> PartitionSummary:
    return PartitionSummary(("p",), count, 1, 1, 1.0)


@pytest.fixture
def fine(tmp_path: Path) -> LayoutReport:
    """A table of 20 million rows in ten V-Ordered files, in all that advice depends on."""
    write_deltalake(tmp_path, pa.table({"id": [i % 5 for i in range(100)]}))
    return replace(
        report(tmp_path),
        files=_files([500 * _MB] * 10),
        rows=20 * _MB,
        row_groups=_groups([2 * _MB] * 10),
        vorder_files=10,
        vorder_percent=100,
    )


def _topics(found: LayoutReport) -> list[AdviceTopic]:
    return [one.topic for one in advice(found)]


_MANY_SMALL = {"files": _files([500 * _MB] * 5 + [_MB] * 9), "vorder_files": 14}


@pytest.mark.parametrize(
    ("changes", "topics"),
    [
        ({}, []),
        (_MANY_SMALL, [AdviceTopic.SMALL_FILES]),
        ({"files": _files([500 * _MB] * 2 + [_MB] * 8)}, []),
        (_MANY_SMALL | {"partitions": _partitions(14)}, []),
        ({"files": _files([3_000 * _MB] + [500 * _MB] * 9)}, [AdviceTopic.LARGE_FILES]),
        ({"row_groups": _groups([100_000] * 200)}, [AdviceTopic.ROW_GROUPS]),
        ({"row_groups": _groups([1_500_000, 500_000] * 10)}, []),  # the last group of each file may be small
        ({"rows": 900_000, "row_groups": _groups([100_000] * 9)}, []),
        ({"vorder_files": 4, "vorder_percent": 30}, [AdviceTopic.VORDER]),
        ({"hidden_rows": 980_000}, []),
        ({"hidden_rows": 1_020_000}, [AdviceTopic.VECTORS]),
        ({"much_hidden_files": 1}, [AdviceTopic.VECTORS]),
        ({"partitions": _partitions(200)}, []),
        ({"partitions": _partitions(201)}, [AdviceTopic.PARTITIONS]),
    ],
)
def test_each_topic_has_a_limit(fine: LayoutReport, changes: dict[str, object], topics: list[AdviceTopic]) -> None:
    assert _topics(replace(fine, **changes)) == topics  # type: ignore[arg-type]


def test_advice_has_numbers_and_what_to_do(fine: LayoutReport) -> None:
    bad = replace(fine, row_groups=_groups([100_000] * 200), vorder_files=4, vorder_percent=30)
    groups, vorder = map(str, advice(bad))
    assert groups.startswith("200 of 200 row groups have less than 1 million rows: make OPTIMIZE")
    assert vorder.startswith("6 of 10 files are not V-Ordered: run OPTIMIZE … VORDER in Fabric")


_MOSTLY_PLAIN = {"without_dictionary_percent": 60}


@pytest.mark.parametrize(
    ("changes", "topics"),
    [
        ({"is_dropped": True, "compressed": 500 * _MB}, [AdviceTopic.DROPPED]),
        ({"is_dropped": True, "compressed": 5 * _MB}, []),
        (_MOSTLY_PLAIN, [AdviceTopic.DICTIONARIES]),
        (_MOSTLY_PLAIN | {"share": 9}, []),
        (_MOSTLY_PLAIN | {"physical_types": ("BOOLEAN",)}, []),
    ],
)
def test_columns_have_limits_also(fine: LayoutReport, changes: dict[str, object], topics: list[AdviceTopic]) -> None:
    (column,) = fine.columns
    assert _topics(replace(fine, columns=(replace(column, **changes),))) == topics  # type: ignore[arg-type]
