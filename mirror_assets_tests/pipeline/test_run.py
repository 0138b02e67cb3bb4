"""One table, from its log to landing files to an equal mirror."""

from __future__ import annotations

import pytest

from mirror_assets.encode.errors import DUPLICATE_KEY
from mirror_assets.encode.part_assignment import group_commits
from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, RetryError, SettingError
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Pace
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import CHECKS_FAILED, ChecksFailed
from mirror_assets.pipeline.land_slice import ProcessedSlice, publish_slice
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.scripted_mirror import Scripted
from mirror_assets_tests.spark_4 import possible_with_spark_4


def test_a_history_ends_equal_to_its_source_and_nothing_new_lands_nothing(mirrored: Lab) -> None:
    assert mirrored.files == [f"{number:020d}.parquet" for number in (1, 2, 3)]
    pending = reconcile_table(mirrored.context, mirrored.replicator)
    assert pending.state is ReconcileState.PENDING, "files that wait are no difference"
    assert mirrored.is_equal
    assert mirrored.mirror() == []
    assert publish_slice(mirrored.context, key(2, 3)).outcome is Outcome.COVERED


def test_an_empty_table_lands_one_typed_file(lab: Lab) -> None:
    lab.sql("DELETE FROM {t}")
    (slice_,) = lab.mirror()
    assert [entry.markers.total for entry in slice_.published.entries] == [0]
    assert lab.is_equal


def test_a_rebuild_that_waits_too_long_goes_on_where_it_was(mirrored: Lab) -> None:
    short, there = Pace(pause_seconds=0.01, limit_seconds=0.05), mirrored.replicator.poll_table(TABLE)
    with raises(RetryError, ErrorCode.TABLE_BUSY, match="dropped"):
        rebuild_table(mirrored.context, Scripted([lambda: there], pace=short), lambda _: None)
    with raises(RetryError, ErrorCode.TABLE_BUSY, match="come back"):
        rebuild_table(mirrored.context, Scripted(pace=short), lambda _: None)
    assert rebuild_table(mirrored.context, mirrored.replicator, lambda _: None).outcome is Outcome.COVERED
    record = drive(read_rebuild(TABLE), mirrored.store)
    assert record is not None
    assert not record.is_running
    assert mirrored.is_equal


@pytest.mark.parametrize(
    ("is_first_load", "rows", "error", "match"),
    [
        (False, "(300, 'x', 1), (300, 'y', 1)", DUPLICATE_KEY, "id=300"),
        (True, "(1, 'again', 1)", CHECKS_FAILED, r"key_uniqueness.*id=1"),
    ],
)
def test_bad_keys_publish_nothing(
    lab: Lab, is_first_load: bool, rows: str, error: ErrorRow[MirrorError], match: str
) -> None:
    if not is_first_load:
        lab.mirror()
    landed = lab.files
    lab.sql(f"INSERT INTO {{t}} VALUES {rows}")
    with raises_row(error, match=match):
        lab.mirror()
    assert lab.files == landed
    if error is DUPLICATE_KEY:  # the slice has both commits then, and its versions are compared: the key is in neither
        lab.sql("DELETE FROM {t} WHERE id = 300")
        assert [done.planned.last for done in lab.mirror()] == [lab.context.log.newest()]
        assert lab.is_equal


def test_a_table_replaced_by_one_without_a_feed_keeps_what_landed(mirrored: Lab) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (901, 'x', 1)")
    with possible_with_spark_4():
        mirrored.sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id")
    with raises(SettingError, ErrorCode.FEED_DISABLED, match="ALTER TABLE"):
        mirrored.mirror()
    assert len(mirrored.files) == 4


def test_columns_may_have_any_name(lab: Lab) -> None:
    """Names that the encoder and the checks might use themselves, as columns and as keys."""
    names = ["file", "rows", "key1", "__part", "___IS_NEW", "nth", "version", "key0", "a.b"]
    frame = lab.spark.createDataFrame([(1, 2, 3, 4, 5, 6, 7, 8, 9), (2, 2, 3, 4, 5, 6, 7, 8, 9)], names)
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(lab.uri)
    lab.configure(keys="[rows, file, key0]")
    lab.mirror()
    lab.sql("UPDATE {t} SET nth = 60, `a.b` = 90 WHERE `file` = 1", "UPDATE {t} SET nth = 61 WHERE `file` = 1")
    (landed,) = lab.mirror()
    assert [result.metadata["commits_compared"] for result in landed.results if result.check == "row_order"] == [2]
    assert lab.is_equal


def test_an_added_column_lands_in_place_and_is_no_difference_before_its_first_value(mirrored: Lab) -> None:
    mirrored.sql("ALTER TABLE {t} ADD COLUMNS (tags ARRAY<STRING>)")
    mirrored.mirror()
    assert mirrored.is_equal
    mirrored.sql("UPDATE {t} SET tags = array('a') WHERE id = 2", "ALTER TABLE {t} ADD COLUMNS (note STRING)")
    mirrored.sql("UPDATE {t} SET note = 'x' WHERE id = 2")
    mirrored.mirror()
    assert mirrored.manifest().epoch == 1
    assert mirrored.is_equal


def test_a_table_that_the_replicator_has_stopped_is_not_pending(mirrored: Lab) -> None:
    (mirrored.folder / mirrored.files[0]).write_bytes(b"no Parquet")
    mirrored.replicator.poll()
    result = reconcile_table(mirrored.context, mirrored.replicator)
    assert result.state is ReconcileState.STOPPED
    assert mirrored.files[0] in result.reason


def test_what_a_killed_publisher_had_committed_lands_with_the_next_run(mirrored: Lab) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (960, 'x', 1)")
    (landed,) = mirrored.mirror()
    (entry,) = landed.published.entries
    (mirrored.folder / mirrored.files[-1]).rename(mirrored.root / "landing" / entry.staged)
    assert len(mirrored.files) == 3
    assert mirrored.mirror() == []
    assert len(mirrored.files) == 4
    assert mirrored.is_equal


@pytest.mark.parametrize("clears", [True, False], ids=["cleared away", "landed as staged"])
def test_a_run_that_is_overtaken_plans_again(mirrored: Lab, monkeypatch: pytest.MonkeyPatch, clears: bool) -> None:
    """Another run lands the slice before this one has checked what it staged: its own parts, or these."""
    mirrored.sql("INSERT INTO {t} VALUES (950, 'x', 1)", "INSERT INTO {t} VALUES (951, 'y', 1)")
    real, told = run_checks, list[str]()

    def be_overtaken(context: TableContext, record: SliceRecord) -> tuple[SliceRecord, tuple[CheckResult, ...]]:
        monkeypatch.setattr("mirror_assets.pipeline.land_slice.run_checks", real)
        if clears:
            mirrored.store.delete_tree(record.folder.path)
        mirrored.mirror()
        return real(context, record)

    monkeypatch.setattr("mirror_assets.pipeline.land_slice.run_checks", be_overtaken)
    assert mirrored.mirror(told.append) == []
    assert any("another publisher committed" in line for line in told)
    assert len(mirrored.files) == 4
    assert mirrored.is_equal


def test_refused_attempts_do_not_pile_up(mirrored: Lab) -> None:
    scratch, landed = mirrored.store.local_path(TABLE.scratch), mirrored.files
    for statement in ("INSERT INTO {t} VALUES (NULL, 'x', 1)", "DELETE FROM {t} WHERE id IS NULL"):
        mirrored.sql(statement)  # the first commit remains in the feed
        with pytest.raises(ChecksFailed, match=r"key_presence.*'id' is NULL in \d rows? of commit.*rebuild"):
            mirrored.mirror()
        assert mirrored.files == landed
        assert len(list(scratch.glob("4-*"))) == 1, "the newest attempt, for a look"


def _lands_equal(lab: Lab) -> ProcessedSlice:
    """What waits lands as one slice, and the mirror is its source."""
    (mirrored,) = lab.mirror()
    assert lab.is_equal
    return mirrored


def test_a_restore_over_several_parts_and_a_delete_behind_it(lab: Lab) -> None:
    lab.configure("", "files: {target_rows: 50}")
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10, 60)",
    )
    lab.mirror()
    lab.sql(
        "UPDATE {t} SET amount = amount + 1", "RESTORE TABLE {t} TO VERSION AS OF 3", "DELETE FROM {t} WHERE id = 7"
    )
    mirrored = _lands_equal(lab)
    *_, run = (run for run in group_commits(mirrored.planned.assignments) if not run.unpaired)
    assert run.parts >= 3
    assert len(run.assignments) > 1


def test_overwrites_with_small_deletes_and_merges_between_them(lab: Lab) -> None:
    lab.configure("", "files: {target_rows: 90}\n  slices: {max_commits: 6}")
    lab.sql("INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10, 300)")
    lab.mirror()
    for turn in range(2):
        lab.sql(
            f"INSERT OVERWRITE {{t}} SELECT CAST(id AS INT), 'o{turn}', id * {turn + 2} FROM range({turn * 50}, 200)",
            f"DELETE FROM {{t}} WHERE id IN ({100 + turn}, {150 + turn})",
            f"MERGE INTO {{t}} t USING (SELECT {120 + turn} AS id UNION ALL SELECT {700 + turn}) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, 'm', 1)",
        )
    mirrored = _lands_equal(lab)
    assert max(run.parts for run in group_commits(mirrored.planned.assignments)) >= 3
    versions = [(part.first_version, part.last_version) for part in mirrored.record.parts]
    assert all(None not in version for version in versions)
    assert versions == sorted(versions)
