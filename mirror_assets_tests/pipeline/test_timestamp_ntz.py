"""What lands of `timestamp_ntz` by the setting of that name: as a value, as a key, in all ways of reading changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.preview import landing_rows
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab

_FIRST, _LAST = "0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999"
# Neither exists in Berlin's clocks, or it does twice.
_GAP, _TWICE, _TICK = "2024-03-31 02:30:00.000000", "2024-10-27 02:30:00.000000", "2024-01-01 00:00:00.000001"
_UTC = timezone.utc
LANDED: dict[str, tuple[str, Callable[[str], object]]] = {
    "utc": ("timestamp", lambda text: datetime.fromisoformat(text).replace(tzinfo=_UTC)),
    "text": ("string", str),
    "as_is": ("timestamp_ntz", datetime.fromisoformat),
}
WAYS = {
    "feed": "changes: feed",
    "net": "changes: feed\n    compact: true",
    "files": "changes: files",
    "row_tracking": "changes: row_tracking",
    "append_only": "changes: append_only",
}


def _lab(spark: SparkSession, folder: Path, form: str, way: str) -> Lab:
    """Rows whose key is a time, with a time as value and one in nested values."""
    lab = Lab(spark, folder)
    lab.sql(
        "CREATE TABLE {t} (at TIMESTAMP_NTZ NOT NULL, wall TIMESTAMP_NTZ, "
        "deep STRUCT<w: TIMESTAMP_NTZ, l: ARRAY<MAP<TIMESTAMP_NTZ, TIMESTAMP_NTZ>>>) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableRowTracking = true)",
    )
    keys = "[]" if way == "append_only" else "[at]"
    lab.configure(f"timestamp_ntz: {form}\n    {WAYS[way]}", keys=keys)
    _insert(lab, _FIRST, _LAST, _GAP)
    return lab


def _insert(lab: Lab, *times: str) -> None:
    rows = (
        f"(TIMESTAMP_NTZ'{text}', TIMESTAMP_NTZ'{text}', named_struct('w', TIMESTAMP_NTZ'{text}', 'l', "
        f"array(map(TIMESTAMP_NTZ'{text}', TIMESTAMP_NTZ'{text}'))))"
        for text in times
    )
    lab.sql(f"INSERT INTO {{t}} VALUES {', '.join(rows)}")


def _mirrored(lab: Lab) -> dict[object, tuple[object, object]]:
    lab.replicator.poll()
    rows = DeltaTable(str(lab.root / "mirror" / "shop" / "orders")).to_pyarrow_table().to_pylist()
    return {row["at"]: (row["wall"], row["deep"]) for row in rows}


@pytest.mark.parametrize(
    ("form", "way"),
    [*(("utc", way) for way in WAYS), ("text", "feed"), ("text", "files"), ("as_is", "feed")],
)
def test_values_keys_and_nested_values(spark: SparkSession, tmp_path: Path, form: str, way: str) -> None:
    kind, landed = LANDED[form]
    lab = _lab(spark, tmp_path, form, way)
    lab.mirror()
    _insert(lab, _TWICE, _TICK)
    if way != "append_only":
        lab.sql(f"DELETE FROM {{t}} WHERE at = TIMESTAMP_NTZ'{_FIRST}'")
        lab.sql(f"UPDATE {{t}} SET wall = TIMESTAMP_NTZ'{_FIRST}' WHERE at = TIMESTAMP_NTZ'{_TICK}'")
    lab.mirror()
    iso = {text: text.replace(" ", "T") for text in (_FIRST, _LAST, _GAP, _TWICE, _TICK)}
    nested = {text: f'{{"w":"{told}","l":[{{"{told}":"{told}"}}]}}' for text, told in iso.items()}
    wanted = {landed(text): (landed(text), nested[text]) for text in iso}
    if way != "append_only":
        del wanted[landed(_FIRST)]
        wanted[landed(_TICK)] = (landed(_FIRST), nested[_TICK])
    assert _mirrored(lab) == wanted
    assert [column.type for column in lab.manifest().columns] == [kind, kind, "string"]
    assert lab.compare().state is ReconcileState.EQUAL
    shown = landing_rows(lab.context, 9)
    assert len(shown) == len(wanted)


def test_a_difference_of_a_microsecond_is_found(spark: SparkSession, tmp_path: Path) -> None:
    for form in ("utc", "text"):
        lab = _lab(spark, tmp_path / form, form, "feed")
        lab.mirror()
        lab.replicator.poll()
        mirror = f"delta.`{lab.root / 'mirror' / 'shop' / 'orders'}`"
        earlier = "CAST(wall AS TIMESTAMP_NTZ) - INTERVAL '0.000001' SECOND"
        spark.sql(f"UPDATE {mirror} SET wall = {earlier} WHERE wall > '2025'")
        assert lab.compare().state is ReconcileState.DIFFERENT, form


def test_another_form_is_a_break_that_only_a_rebuild_resolves(spark: SparkSession, tmp_path: Path) -> None:
    lab = _lab(spark, tmp_path, "as_is", "feed")
    lab.mirror()
    lab.replicator.poll()
    for form in ("utc", "text"):
        lab.configure(f"timestamp_ntz: {form}", defaults="on_break: hold", keys="[at]")
        stop = plan_table(lab.context).stop
        assert stop is not None
        assert "`timestamp_ntz` computes `at`, `wall` in another way than landed" in stop.message
    lab.configure("timestamp_ntz: text", defaults="on_break: repair", keys="[at]")
    lab.mirror()
    assert lab.manifest().epoch == 2, "a repair can't change a type"
    assert lab.is_equal


def test_expressions_have_the_column_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    lab = _lab(spark, tmp_path, "text", "feed")
    lab.configure(
        "timestamp_ntz: text\n    where: wall > TIMESTAMP_NTZ'2000-01-01 00:00:00'\n    columns:\n"
        "      wall: {sql: wall + INTERVAL '1' SECOND}\n      year: {sql: year(wall), type: int}\n"
        "      same: {sql: wall, type: timestamp_ntz}",
        keys="[at]",
    )
    lab.mirror()
    assert {column.name: column.type for column in lab.manifest().columns} == {
        "at": "string",
        "wall": "string",
        "deep": "string",
        "year": "int",
        "same": "timestamp_ntz",
    }
    lab.replicator.poll()
    rows = DeltaTable(str(lab.root / "mirror" / "shop" / "orders")).to_pyarrow_table().to_pylist()
    (gap,) = (row for row in rows if row["at"] == _GAP)
    assert (gap["wall"], gap["year"], gap["same"]) == ("2024-03-31 02:30:01.000000", 2024, datetime(2024, 3, 31, 2, 30))  # noqa: DTZ001
    assert len(rows) == 2
    assert lab.is_equal
