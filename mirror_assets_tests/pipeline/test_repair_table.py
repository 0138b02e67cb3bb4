"""A repair lands the difference between source and mirror, in the same epoch, and later slices follow it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.errors import DUPLICATE_KEY
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.format import MarkerCounts, SliceKind
from mirror_assets.markers import Marker
from mirror_assets.pipeline import land_slice
from mirror_assets.pipeline import repair_table as repair
from mirror_assets.pipeline.errors import REPAIR_REFUSED, ChecksFailed
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.repair_table import count_repair, plan_repair, repair_table
from mirror_assets.pipeline.stage import stage_attempt
from mirror_assets.verify.landed import file_continuity
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.pipeline.test_row_tracking import vacuum
from mirror_assets_tests.smoke import smoke_first


def _mirror(lab: Lab) -> Path:
    lab.replicator.poll()
    status = lab.replicator.table(TABLE)
    assert status is not None
    return Path(status.location)


def _damage(lab: Lab) -> None:
    """In the mirror: key 0 is missing, 900 extra, 1 and 2 have other values, 4 is there twice."""
    rows = DeltaTable(str(_mirror(lab))).to_pyarrow_table()
    changed = [row | {"amount": -0.0} if row["id"] in (1, 2) else row for row in rows.to_pylist() if row["id"]]
    twice = next(row for row in changed if row["id"] == 4)
    damaged = pa.Table.from_pylist([*changed, twice, twice | {"id": 900}], schema=rows.schema)
    write_deltalake(str(_mirror(lab)), damaged, mode="overwrite")


def _repair(lab: Lab) -> ProcessedSlice:
    repaired = repair_table(lab.context, lab.replicator, lambda _: None)
    assert repaired is not None
    return repaired


def _require_continued(lab: Lab) -> None:
    """Fail unless the mirror is equal, in its first epoch, and a later slice lands."""
    assert lab.is_equal
    assert lab.manifest().epoch == 1
    lab.sql("UPDATE {t} SET amount = 77 WHERE id = 1", "INSERT INTO {t} VALUES (901, 'later', 1)")
    lab.mirror()
    assert lab.is_equal
    assert lab.manifest().epoch == 1
    assert file_continuity(lab.store, TABLE, None).passed


@pytest.mark.long(20)
def test_damaged_rows_are_repaired(mirrored: Lab) -> None:
    _damage(mirrored)
    before = mirrored.manifest()
    changes = count_repair(plan_repair(mirrored.context, mirrored.replicator, lambda _: None))
    assert changes.counts == {Marker.UPDATE: 2, Marker.DELETE: 1, Marker.UPSERT: 2}
    assert changes.keys[Marker.UPDATE] == ["«id=1»", "«id=2»"]
    assert mirrored.manifest() == before
    record = _repair(mirrored).record
    assert record.markers == MarkerCounts(updates=2, deletes=1, upserts=2)
    assert (record.kind, str(record.slice)) == (SliceKind.REPAIR, "1.5-5")
    after = mirrored.manifest()
    assert (after.covered, after.generation) == (before.covered, before.generation + 1)
    _require_continued(mirrored)


def test_many_differing_keys_are_joined_without_a_broadcast(mirrored: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.encode.repair.BROADCAST_KEYS", 0)
    _damage(mirrored)
    assert _repair(mirrored).record.markers == MarkerCounts(updates=2, deletes=1, upserts=2)
    assert mirrored.is_equal


_FAULTS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "lost": lambda rows: rows.where("id <> 1"),
    "doubled": lambda rows: rows.union(rows.where("id = 1")),
}


@pytest.mark.parametrize("broadcast", [2_000_000, 0], ids=["few", "many"])
@pytest.mark.parametrize("fault", smoke_first(list(_FAULTS)))
def test_a_row_that_its_reader_loses_or_doubles_is_not_published(
    mirrored: Lab, monkeypatch: pytest.MonkeyPatch, fault: str, broadcast: int
) -> None:
    """The comparison has another reader, and its counts are those that must have been written."""
    monkeypatch.setattr("mirror_assets.encode.repair.BROADCAST_KEYS", broadcast)
    faulty = lambda *args, **named: _FAULTS[fault](read_scan(*args, **named))  # noqa: E731
    monkeypatch.setattr(repair, "read_scan", faulty)
    _damage(mirrored)
    before = mirrored.manifest()
    with pytest.raises(ChecksFailed, match="row_conservation"):
        _repair(mirrored)
    assert mirrored.manifest() == before


def test_columns_with_names_of_the_comparison_are_repaired(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure(keys="[c1, C]")
    lab.sql(
        "CREATE TABLE {t} (C STRING, source_rows INT, c0 INT, c1 INT, _side INT, `__key0` INT, n MAP<DATE, INT>) "
        "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "INSERT INTO {t} SELECT concat('n', id), id, id, id, id, id, map(DATE'2020-01-01', id) FROM range(6)",
    )
    lab.mirror()
    lab.replicator.poll()
    mirror = f"delta.`{_mirror(lab)}`"
    spark.sql(f"UPDATE {mirror} SET n = 'x', c0 = NULL WHERE c1 = 1")
    spark.sql(f"DELETE FROM {mirror} WHERE c1 = 2")
    spark.sql(f"INSERT INTO {mirror} (c1, C) VALUES (9, 'more')")
    assert _repair(lab).record.markers == MarkerCounts(updates=1, deletes=1, upserts=1)
    assert lab.is_equal


@pytest.mark.long(20)
def test_a_mirror_restored_from_a_backup_is_repaired_with_the_pending_commits(mirrored: Lab) -> None:
    table = _mirror(mirrored)
    shutil.copytree(table, mirrored.root / "backup")
    mirrored.sql("UPDATE {t} SET amount = 5 WHERE id = 7", "DELETE FROM {t} WHERE id = 8")
    mirrored.mirror()
    assert mirrored.is_equal
    shutil.rmtree(table)
    shutil.copytree(mirrored.root / "backup", table)
    mirrored.sql("INSERT INTO {t} VALUES (300, 'new', 1)", "OPTIMIZE {t}")
    assert str(_repair(mirrored).record.slice) == "1.8-9"
    assert mirrored.mirror() == []
    _require_continued(mirrored)


def _switch_off(lab: Lab) -> None:
    """Commits without a feed."""
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)",
        "UPDATE {t} SET amount = 300 WHERE id = 6",
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    )


def _lose_feed(lab: Lab) -> None:
    """A commit whose change files are gone."""
    lab.sql("UPDATE {t} SET amount = 300 WHERE id = 6")
    for file in Path(lab.uri, "_change_data").iterdir():
        file.unlink()


@pytest.mark.long(20)
@pytest.mark.parametrize("gap", smoke_first([_switch_off, _lose_feed]))
def test_a_gap_of_the_feed_whose_old_files_are_gone_is_repaired_when_asked(
    mirrored: Lab, gap: Callable[[Lab], None]
) -> None:
    mirrored.configure("on_break: repair")
    gap(mirrored)
    vacuum(mirrored)
    (repaired,) = mirrored.mirror()
    assert repaired.record.kind is SliceKind.REPAIR
    _require_continued(mirrored)


def test_a_source_that_begins_again_with_equal_rows_is_taken_over(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("on_break: repair")
    lab.create()
    lab.mirror()
    shutil.rmtree(lab.uri)
    lab.create()
    (repaired,) = lab.mirror()
    assert (repaired.record.kind, repaired.record.markers.total) == (SliceKind.REPAIR, 0)
    _require_continued(lab)


def test_a_column_without_values_is_added_by_a_repair(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure("columns: [id, name]")
    lab.create()
    lab.sql("UPDATE {t} SET amount = NULL")
    lab.mirror()
    lab.configure("columns: [id, name, amount]\n    on_break: repair")
    (repaired,) = lab.mirror()
    assert repaired.record.kind is SliceKind.REPAIR
    _require_continued(lab)


@pytest.mark.long(10)
def test_a_source_that_begins_again_is_rebuilt(mirrored: Lab) -> None:
    mirrored.configure("on_break: repair")
    shutil.rmtree(mirrored.uri)
    mirrored.create()
    said: list[str] = []
    assert mirrored.mirror(said.append) == []
    assert any("can't be repaired: the source ends at version 1, before the covered version 5" in x for x in said), said
    assert mirrored.manifest().epoch == 2
    assert mirrored.is_equal


def test_a_break_of_the_schema_is_rebuilt(mirrored: Lab) -> None:
    mirrored.configure("on_break: repair")
    other = mirrored.spark.sql("SELECT 1 AS id, 2 AS name")
    other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(mirrored.uri)
    said: list[str] = []
    assert mirrored.mirror(said.append) == []
    refused = "rebuild, because shop.orders can't be repaired: the source has changed its columns"
    assert any(line.startswith(refused) for line in said), said
    assert mirrored.manifest().epoch == 2
    assert mirrored.is_equal


def test_nothing_is_done_unless_everything_has_been_applied(mirrored: Lab) -> None:
    before = mirrored.manifest()
    with raises(RetryError, ErrorCode.TABLE_BUSY, match="files wait for the replicator"):
        plan_repair(mirrored.context, mirrored.replicator, lambda _: None)
    assert mirrored.manifest() == before


def _mirror_more(lab: Lab) -> None:
    lab.sql("INSERT INTO {t} VALUES (300, 'new', 1)")
    lab.mirror()


def _rebuild(lab: Lab) -> None:
    rebuild_table(lab.context, lab.replicator, lambda _: None)
    assert lab.is_equal


@pytest.mark.parametrize(
    ("overtake", "epoch", "kind"), [(_mirror_more, 1, SliceKind.CHANGES), (_rebuild, 2, SliceKind.SNAPSHOT)]
)
def test_a_repair_that_is_overtaken_lands_nothing(
    mirrored: Lab, monkeypatch: pytest.MonkeyPatch, overtake: Callable[[Lab], None], epoch: int, kind: SliceKind
) -> None:
    _damage(mirrored)

    def overtaken(*args: object, **more: object) -> object:
        record = stage_attempt(*args, **more)  # type: ignore[arg-type]
        overtake(mirrored)
        return record

    monkeypatch.setattr(repair, "stage_attempt", overtaken)
    with pytest.raises(LostRace):
        _repair(mirrored)
    assert (mirrored.manifest().epoch, mirrored.manifest().kind) == (epoch, kind)


def test_a_table_of_which_nothing_has_landed_is_refused(lab: Lab) -> None:
    with raises_row(REPAIR_REFUSED, match="nothing of it has landed"):
        plan_repair(lab.context, lab.replicator, lambda _: None)


def test_a_key_twice_in_the_source_lands_nothing(mirrored: Lab) -> None:
    mirrored.replicator.poll()
    mirrored.sql("INSERT INTO {t} VALUES (1, 'again', 1)")
    before = mirrored.manifest()
    with raises_row(DUPLICATE_KEY, match="id=1"):
        _repair(mirrored)
    assert mirrored.manifest() == before


class _Killed(BaseException):
    """The process ends here."""


@pytest.mark.long(30)
def test_a_repair_that_was_killed_is_done_again(mirrored: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """After staging, after the checks, and between commit and rename."""
    _damage(mirrored)
    damaged = _mirror(mirrored)
    shutil.copytree(damaged, mirrored.root / "damaged")
    from mirror_assets.landing import publish

    def killed(function: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **kwargs: object) -> object:
            function(*args, **kwargs)
            raise _Killed

        return run

    before = mirrored.manifest().generation
    for module, name in ((repair, "stage_attempt"), (land_slice, "run_checks")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, killed(getattr(module, name)))
            with pytest.raises(_Killed):
                _repair(mirrored)
        assert mirrored.manifest().generation == before
    with monkeypatch.context() as patched:
        patched.setattr(publish, "land", killed(lambda *_: None))
        with pytest.raises(_Killed):
            _repair(mirrored)
    assert mirrored.manifest().generation == before + 1
    assert repair_table(mirrored.context, mirrored.replicator, lambda _: None) is None
    assert mirrored.manifest().generation == before + 1
    _require_continued(mirrored)
