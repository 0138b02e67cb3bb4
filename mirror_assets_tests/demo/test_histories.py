"""What the tables' pasts hold: keys at every version, operations, and the feed over the whole range."""

from __future__ import annotations

from functools import reduce

import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from mirror_assets.demo.deliveries import delivered
from mirror_assets_tests.demo.conftest import MONTHS, Demo

OPERATIONS = {
    "airlines": ["WRITE", "UPDATE", "MERGE", "WRITE"],
    "airports": ["CREATE TABLE AS SELECT", "UPDATE", "UPDATE", "MERGE", "ADD COLUMNS", "UPDATE"],
    "planes": ["CREATE TABLE AS SELECT", "WRITE", "MERGE", "UPDATE", "DELETE"]
    + ["ADD COLUMNS", "MERGE", "MERGE", "OPTIMIZE"],
    "weather": ["CREATE TABLE AS SELECT", "WRITE", "MERGE", "UPDATE", "WRITE", "OPTIMIZE"],
    "flights": ["CREATE TABLE AS SELECT", "WRITE", "WRITE", "OPTIMIZE", "MERGE", "DELETE", "ADD COLUMNS", "UPDATE"],
}


def faulty_versions(demo: Demo, table: str, keys: tuple[str, ...]) -> list[int]:
    """Versions in which two rows share a key or a key has a gap (`count(DISTINCT ...)` leaves gaps out)."""
    distinct = F.count_distinct(*(F.col(key) for key in keys))
    counts = [
        demo.rows(table, version).agg(F.lit(version).alias("version"), (F.count("*") != distinct).alias("faulty"))
        for version in range(len(OPERATIONS[table]))
    ]
    return sorted(int(row.version) for row in reduce(DataFrame.union, counts).where("faulty").collect())


@pytest.mark.parametrize("table", OPERATIONS)
def test_keys_are_unique_and_whole_at_every_version(demo: Demo, table: str) -> None:
    assert faulty_versions(demo, table, demo.keys[table]) == []


def test_wrong_keys_are_found_at_every_version(demo: Demo) -> None:
    assert faulty_versions(demo, "flights", ("date", "carrier", "flight", "dest")) == []
    assert faulty_versions(demo, "weather", ("origin",)) == list(range(6))


@pytest.mark.parametrize("table", OPERATIONS)
def test_operations(demo: Demo, table: str) -> None:
    assert demo.operations(table) == OPERATIONS[table]


@pytest.mark.parametrize("table", OPERATIONS)
def test_the_whole_feed_replayed_is_the_table(demo: Demo, table: str) -> None:
    keys, feed = list(demo.keys[table]), demo.feed(table)
    newest = feed.groupBy(*keys).agg(F.max("_commit_version").alias("_commit_version"))
    is_new = F.col("_change_type").isin("insert", "update_postimage")
    columns = demo.rows(table).columns
    replayed = feed.where(is_new).join(newest, [*keys, "_commit_version"]).select(columns)
    assert replayed.exceptAll(demo.rows(table)).count() == 0
    assert demo.rows(table).exceptAll(replayed).count() == 0


def test_a_key_changes(demo: Demo) -> None:
    assert demo.changes("airports", 2) == [("update_postimage", "XWA"), ("update_preimage", "ISN")]
    assert demo.changes("planes", 3) == [("update_postimage", "N10157"), ("update_preimage", "N10156")]


def test_two_keys_change_places(demo: Demo) -> None:
    kinds = ("update_postimage", "update_preimage")
    assert demo.changes("airports", 1) == [(kind, code) for kind in kinds for code in ("BWI", "DCA")]
    names = {
        row.faa: row.name
        for row in demo.rows("airports", 1).where("faa IN ('BWI', 'DCA')").select("faa", "name").collect()
    }
    assert names == {"BWI": "Baltimore Washington Intl", "DCA": "Ronald Reagan Washington Natl"}


def test_one_commit_deletes_and_inserts_a_key(demo: Demo) -> None:
    assert demo.changes("planes", 7) == [("delete", "N102UW"), ("insert", "N102UW")]
    by_kind = {
        kind: {key for other, *key_parts in demo.changes("airlines", 3) if other == kind for key in key_parts}
        for kind in ("delete", "insert")
    }
    assert by_kind["delete"] - by_kind["insert"] == {"G4", "NK"}
    assert len(by_kind["insert"]) == 16
    day = demo.changes("weather", 4)
    assert [key for kind, *key in day if kind == "delete"] == [key for kind, *key in day if kind == "insert"]
    assert len(day) == 48


def test_a_day_of_flights_arrives_late(demo: Demo) -> None:
    day = demo.rows("flights", 2).where("date = '2013-01-15'").count()
    assert demo.rows("flights", 1).where("date = '2013-01-15'").count() == 0
    assert demo.feed("flights", 2, 2).count() == day > 800


def test_deletion_vectors_partitions_and_nested_columns(demo: Demo) -> None:
    log = demo.root / "lake" / "planes" / "_delta_log"
    assert '"deletionVector"' in (log / f"{4:020d}.json").read_text()
    assert not any(
        '"deletionVector"' in path.read_text() for path in (demo.root / "lake" / "flights").glob("_delta_log/*.json")
    )
    assert {path.name for path in (demo.root / "lake" / "flights").glob("month=*")} == {"month=1", "month=2"}
    assert dict(demo.rows("airports").dtypes)["location"] == "struct<lat:double,lon:double>"


def test_flights_end_as_the_package_has_them_without_those_cancelled(demo: Demo) -> None:
    order = [(key, "ascending") for key in demo.keys["flights"]]
    found = demo.rows("flights").toArrow()
    expected = delivered("flights", MONTHS)
    expected = expected.filter(pc.is_valid(expected["dep_time"])).sort_by(order)
    assert found.drop_columns(["remark"]).sort_by(order).equals(expected.cast(found.drop_columns(["remark"]).schema))
    remarked = found.filter(pc.equal(found["remark"], "diverted"))
    assert remarked.num_rows == expected["arr_delay"].null_count > 0
