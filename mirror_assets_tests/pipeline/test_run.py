"""One table, from its log to landing files to an equal mirror."""

from __future__ import annotations

import pytest

from mirror_assets.encode.errors import DUPLICATE_KEY
from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, RetryError, SettingError
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Pace
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import CHECKS_FAILED, SOURCE_BROKE, ChecksFailed
from mirror_assets.pipeline.land_slice import publish_slice
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.source.errors import LogGap, SourceNotDelta
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.scripted_mirror import Scripted


def test_a_history_ends_equal_to_its_source_and_nothing_new_lands_nothing(mirrored: Lab) -> None:
    assert mirrored.files == [f"{number:020d}.parquet" for number in (1, 2, 3)]
    pending = reconcile_table(mirrored.context, mirrored.replicator)
    assert pending.state is ReconcileState.PENDING, "files that wait are no difference"
    assert mirrored.is_equal
    assert mirrored.mirror() == []
    assert publish_slice(mirrored.context, key(2, 3)).outcome is Outcome.COVERED


def test_commits_without_changes_move_covered_without_a_file(mirrored: Lab) -> None:
    mirrored.sql("OPTIMIZE {t}", "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')")
    (slice_,) = mirrored.mirror()
    assert slice_.published.entries == ()
    assert slice_.published.manifest.covered == 7
    assert mirrored.is_equal


def test_an_empty_table_lands_one_typed_file(lab: Lab) -> None:
    lab.sql("DELETE FROM {t}")
    (slice_,) = lab.mirror()
    assert [entry.markers.total for entry in slice_.published.entries] == [0]
    assert lab.is_equal


def test_a_break_rebuilds_the_table(mirrored: Lab) -> None:
    other = mirrored.spark.sql("SELECT 1 AS id, 2 AS name")
    other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(mirrored.uri)
    told: list[str] = []
    mirrored.mirror(told.append)
    assert any("rebuild" in line for line in told)
    assert (mirrored.manifest().epoch, mirrored.files) == (2, ["00000000000000000001.parquet"])
    assert mirrored.is_equal


def test_a_break_is_held_when_asked(mirrored: Lab) -> None:
    mirrored.configure("on_break: hold")
    mirrored.sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id")
    with raises_row(SOURCE_BROKE, match="version 6"):
        mirrored.mirror()
    assert len(mirrored.files) == 3


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
        (False, "(NULL, 'x', 1)", CHECKS_FAILED, r"key_presence.*'id' is NULL in 1 row of commit "),
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
    lab.sql("DELETE FROM {t} WHERE id IS NULL OR id = 300")
    if error is DUPLICATE_KEY:  # the slice has both commits now, and its versions are compared: the key is in neither
        assert [done.planned.last for done in lab.mirror()] == [lab.context.log.newest()]
        lab.replicator.poll()
        assert lab.is_equal
        return
    if not is_first_load:  # the commit remains in the feed
        with raises_row(error):
            lab.mirror()
    assert lab.files == landed


def test_a_source_that_is_no_delta_table(lab: Lab) -> None:
    (lab.root / "lake" / "orders").rename(lab.root / "lake" / "moved")
    with pytest.raises(SettingError, match="orders") as caught:
        lab.mirror()
    assert isinstance(caught.value, SourceNotDelta) or caught.value.next_step


def test_a_key_that_the_source_lacks_names_the_line(lab: Lab) -> None:
    lab.configure(keys="[idd]")
    with pytest.raises(SettingError, match=r"mirror.yaml:\d+.*idd"):
        lab.mirror()


def test_a_log_with_a_hole_drops_nothing(mirrored: Lab) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (901, 'x', 1)", "INSERT INTO {t} VALUES (902, 'x', 1)")
    (mirrored.root / "lake" / "orders" / "_delta_log" / f"{6:020d}.json").unlink()
    with pytest.raises(LogGap, match="commit 6"):
        mirrored.mirror()
    assert len(mirrored.files) == 3
    assert mirrored.store.head(TABLE.rebuild_record) is None


def test_a_table_replaced_by_one_without_a_feed_keeps_what_landed(mirrored: Lab) -> None:
    mirrored.sql("INSERT INTO {t} VALUES (901, 'x', 1)", "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id")
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
    scratch = mirrored.store.local_path(TABLE.scratch)
    mirrored.sql("INSERT INTO {t} VALUES (NULL, 'x', 1)")
    for _ in range(2):
        with pytest.raises(ChecksFailed, match="rebuild"):
            mirrored.mirror()
        assert len(list(scratch.glob("4-*"))) == 1, "the newest attempt, for a look"


def test_a_compacted_slice_lands_one_change_per_key(waiting: Lab) -> None:
    waiting.configure("compact: true", "slices: {max_commits: 100}")
    (slice_,) = waiting.mirror()
    assert slice_.record.markers.model_dump() == {"inserts": 2, "updates": 2, "deletes": 2, "upserts": 0}
    assert waiting.is_equal
