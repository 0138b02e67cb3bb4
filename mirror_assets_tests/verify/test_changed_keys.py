"""Keys of changes, read in this process: equal if the parts have the changes in order, whatever the keys are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.stage import stage_attempt
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.scan import ChosenRows
from mirror_assets.source.scan_builder import scan_changes
from mirror_assets.source.schema import ALL_ROWS, LandedColumn, Projection
from mirror_assets.verify.changed_keys import KeyReader
from mirror_assets.verify.order import ChangeReader, CommitSums, row_order
from mirror_assets.verify.staged import StagedSlice
from mirror_assets.verify.uniqueness import KeyInspection
from mirror_assets_tests.lab import Lab

_OPEN = KeyInspection(order_is_open=True)
_CHANGES = (
    "UPDATE {t} SET amount = 100 WHERE amount < 3",
    "DELETE FROM {t} WHERE amount = 100 AND number = 1",
    "INSERT INTO {t} SELECT {keys}, number, 7 FROM (SELECT id AS number FROM range(1, 2))",
    "UPDATE {t} SET amount = 200 WHERE number < 3",
    "DELETE FROM {t} WHERE number = 2",
)


class _AskedError(Exception):
    """Spark was asked."""


class _NoSpark:
    """A ChangeReader that reads nothing; its first method is that of the feed."""

    def feed_sums(self, *, with_values: bool) -> dict[int, CommitSums]:  # noqa: ARG002 see ChangeReader
        raise _AskedError


Keys = Mapping[str, tuple[str, str]]
"""The type of each key, and its value as SQL of `number`, by its name."""


def _staged(
    spark: SparkSession, root: Path, keys: Keys, properties: str = "", changes: Sequence[str] = _CHANGES
) -> tuple[Lab, StagedSlice]:
    """A table with ten rows that have landed, and a staged slice of its next commits, in one part."""
    lab = Lab(spark, root)
    root.mkdir()
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in keys.items())
    values = ", ".join(sql for _, sql in keys.values())
    lab.sql(
        f"CREATE TABLE {{t}} ({columns}, number BIGINT, amount DOUBLE) USING delta {properties}",
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        f"INSERT INTO {{t}} SELECT {values}, number, number FROM (SELECT id AS number FROM range(10))",
    )
    lab.configure(defaults="slices: {max_commits: 100}", keys=f"[{', '.join(keys)}]")
    lab.mirror()
    lab.sql(*(one.replace("{keys}", values) for one in changes))
    context = lab.context
    plan = plan_table(context)
    record = stage_attempt(context, next(iter(plan.slices)), plan.position)
    return lab, StagedSlice(context.store, record, context.store)


def _reader(lab: Lab, staged: StagedSlice, projection: Projection = ALL_ROWS) -> KeyReader | None:
    key, log = staged.record.slice, lab.context.log
    scan = scan_changes(log, CommitRange(key.first, key.last, staged.record.source_table_id))
    return KeyReader.of(log, staged, scan, projection)


def _check(lab: Lab, staged: StagedSlice, projection: Projection = ALL_ROWS) -> str:
    return row_order(staged, _OPEN, cast("ChangeReader", _NoSpark()), lambda: _reader(lab, staged, projection)).message


_INT: Keys = {"id": ("INT", "CAST(number AS INT)")}
_VECTORS = "TBLPROPERTIES (delta.enableDeletionVectors = true)"
_DATE = ("DATE", "date_from_unix_date(CAST(number % 2 AS INT))")


@pytest.mark.parametrize(
    ("keys", "properties"),
    [
        (_INT, ""),
        (_INT, _VECTORS),
        (_INT, "TBLPROPERTIES (delta.columnMapping.mode = 'name')"),
        ({"b": ("STRING", "concat('ä', number)"), "a": _DATE}, ""),
        ({"b": ("DECIMAL(20, 3)", "CAST(number AS DECIMAL(20, 3))")}, ""),
        ({"b": ("TIMESTAMP", "timestamp_seconds(number)"), "c": ("BINARY", "CAST('x' AS BINARY)")}, ""),
    ],
)
def test_keys_of_changes_in_order_are_equal_and_exchanged_rows_are_not(
    spark: SparkSession, tmp_path: Path, keys: Keys, properties: str
) -> None:
    lab, staged = _staged(spark, tmp_path / "lab", keys, properties)
    assert _check(lab, staged) == ""

    _exchange(lab, staged)
    with pytest.raises(_AskedError):
        _check(lab, staged)


@pytest.mark.parametrize(
    "keys",
    [
        _INT,
        {"b": ("STRING", "CASE number WHEN 0 THEN '' ELSE CAST(number AS STRING) END"), **_INT},
        {"d": ("DATE", "date_from_unix_date(CAST(number AS INT))")},
    ],
)
def test_a_key_of_zeros_that_is_deleted_and_inserted_is_one_that_changes(
    spark: SparkSession, tmp_path: Path, keys: Keys
) -> None:
    changes = (
        "DELETE FROM {t} WHERE number = 0",
        "INSERT INTO {t} SELECT {keys}, number, 7 FROM (SELECT 0L AS number)",
    )
    lab, staged = _staged(spark, tmp_path / "lab", keys, changes=changes)
    assert _check(lab, staged) == ""
    _exchange(lab, staged)
    with pytest.raises(_AskedError):
        _check(lab, staged)


def _exchange(lab: Lab, staged: StagedSlice) -> None:
    """Write the first row of the only part in place of the last, and the last in place of the first."""
    (part,) = staged.paths
    path = lab.store.local_path(part)
    rows = pq.read_table(path)
    order = [*range(len(rows))]
    order[0], order[-1] = order[-1], order[0]
    pq.write_table(rows.take(pa.array(order)), path)


def test_spark_reads_what_needs_more_than_stored_keys(spark: SparkSession, tmp_path: Path) -> None:
    lab, staged = _staged(spark, tmp_path / "lab", _INT)
    reader = _reader(lab, staged)
    assert reader is not None
    assert reader.feed_sums()
    assert replace(reader, types=(pa.int64(),)).feed_sums() is None
    assert replace(reader, names=("absent",)).feed_sums() is None
    assert _reader(lab, staged, Projection(where="amount > 3")) is None
    assert _reader(lab, staged, Projection(computed=(LandedColumn("ID", "int"),))) is None

    none = replace(reader.scan.files[0], chosen=ChosenRows(BitMap64(), are_read=True))
    assert replace(reader, scan=replace(reader.scan, files=(none,))).feed_sums() == {}
    damaged = tmp_path / "lab" / "lake" / "orders" / reader.scan.files[0].path
    damaged.write_bytes(damaged.read_bytes()[:-9])
    assert reader.feed_sums() is None

    one_of_many = ChosenRows(BitMap64([5_000_000]), are_read=True)
    large = replace(reader.scan, files=(replace(reader.scan.files[0], chosen=one_of_many),))
    assert KeyReader.of(reader.log, staged, large, ALL_ROWS) is None
