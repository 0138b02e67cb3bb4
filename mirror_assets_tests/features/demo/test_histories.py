"""What the tables' pasts hold: keys at every version, operations, and the feed over the whole range."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mirror_assets.features.demo.with_spark.demo_lake import delivered
from mirror_assets_tests.features.demo.conftest import MONTHS, Demo, all_tables
from mirror_assets_tests.features.demo.test_demo_lake import doubled

# The lake is made once, in the process that runs all of these.
pytestmark = [pytest.mark.long(30), pytest.mark.xdist_group("demo")]

CREATE, ADD = "CREATE TABLE AS SELECT", "ADD COLUMNS"
OPERATIONS = {
    "airlines": ["WRITE", "UPDATE", "MERGE", "WRITE"],
    "airports": [CREATE, "UPDATE", "UPDATE", "MERGE", ADD, "UPDATE"],
    "planes": [CREATE, "WRITE", "MERGE", "UPDATE", "DELETE", ADD, "MERGE", "MERGE", "OPTIMIZE"],
    "weather": [CREATE, "WRITE", "MERGE", "UPDATE", "WRITE", "OPTIMIZE"],
    "flights": [CREATE, "WRITE", "WRITE", "OPTIMIZE", "MERGE", "DELETE", ADD, "UPDATE"],
}


def faulty_versions(demo: Demo, table: str, keys: tuple[str, ...]) -> list[int]:
    """Versions in which two rows share a key or a key has a gap."""
    versions = [demo.rows(table, version) for version in range(len(OPERATIONS[table]))]
    return [
        version
        for version, rows in enumerate(versions)
        if doubled(rows, keys) or any(rows[key].null_count for key in keys)
    ]


def sorted_by(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    return rows.sort_by([(key, "ascending") for key in keys])


def replayed(feed: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """What is left of a feed: the newest row of each key, if it is a new row; old rows come before new ones."""
    is_new = pc.is_in(feed["_change_type"], value_set=pa.array(["insert", "update_postimage"]))
    ordered = feed.append_column("is_new", is_new).sort_by([("_commit_version", "ascending"), ("is_new", "ascending")])
    numbered = ordered.append_column("number", pa.array(range(ordered.num_rows)))
    newest = ordered.take(numbered.group_by(list(keys)).aggregate([("number", "max")])["number_max"])
    return newest.filter(newest["is_new"])


def test_keys_are_unique_and_whole_at_every_version(demo: Demo) -> None:
    assert [table for table in demo.tables if faulty_versions(demo, table, demo.keys[table])] == []


def test_operations(demo: Demo) -> None:
    assert {table: demo.operations(table) for table in demo.tables} == {t: OPERATIONS[t] for t in demo.tables}


def test_the_whole_feed_replayed_is_the_table(demo: Demo) -> None:
    for table in demo.tables:
        keys, rows = demo.keys[table], demo.rows(table)
        left = replayed(demo.feeds[table], keys).select(rows.column_names)
        assert sorted_by(left, keys).equals(sorted_by(rows, keys).cast(left.schema)), table


def test_a_key_changes(demo: Demo) -> None:
    assert demo.changes("airports", 2) == [("update_postimage", "XWA"), ("update_preimage", "ISN")]
    assert pa.types.is_struct(demo.rows("airports").schema.field("location").type)


def test_two_keys_change_places(demo: Demo) -> None:
    kinds = ("update_postimage", "update_preimage")
    assert demo.changes("airports", 1) == [(kind, code) for kind in kinds for code in ("BWI", "DCA")]
    airports = demo.rows("airports", 1)
    names = dict(zip(airports["faa"].to_pylist(), airports["name"].to_pylist(), strict=True))
    assert (names["BWI"], names["DCA"]) == ("Baltimore Washington Intl", "Ronald Reagan Washington Natl")


@all_tables
def test_one_merge_deletes_and_inserts_a_key(demo: Demo) -> None:
    assert demo.changes("planes", 3) == [("update_postimage", "N10157"), ("update_preimage", "N10156")]
    assert demo.changes("planes", 7) == [("delete", "N102UW"), ("insert", "N102UW")]


def test_an_overwrite_deletes_and_inserts_every_key(demo: Demo) -> None:
    carriers = demo.changes("airlines", 3)
    old, new = ({key for kind, key in carriers if kind == wanted} for wanted in ("delete", "insert"))
    assert len(new) == 16
    assert old - new == {"G4", "NK"}


@all_tables
def test_deletion_vectors_on_planes_only(demo: Demo) -> None:
    def with_vectors(table: str) -> set[str]:
        log = (demo.root / "lake" / table / "_delta_log").glob("*.json")
        return {path.stem.lstrip("0") for path in log if '"deletionVector":' in path.read_text()}

    assert {table for table in demo.tables if with_vectors(table)} == {"planes"}
    assert "4" in with_vectors("planes")


@all_tables
def test_flights_end_as_the_package_has_them_without_those_cancelled(demo: Demo) -> None:
    keys, found, expected = demo.keys["flights"], demo.rows("flights"), delivered("flights", MONTHS)
    flown = expected.filter(pc.is_valid(expected["dep_time"]))
    assert sorted_by(found.select(flown.column_names), keys).cast(flown.schema).equals(sorted_by(flown, keys))
    diverted = found.filter(pc.equal(found["remark"], "diverted"))
    assert diverted.num_rows == flown["arr_delay"].null_count > 0
