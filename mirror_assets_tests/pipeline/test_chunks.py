"""First loads and rebuilds in chunks: killed on the way, gone on with, or begun again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.cli.show import status
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, StopError
from mirror_assets.landing.format import Column
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published, publish
from mirror_assets.landing.recover import list_attempts
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline import land_slice as land
from mirror_assets.pipeline.check_slice import check_staged, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SNAPSHOT_LOST, SOURCE_BROKE, ChecksFailed
from mirror_assets.pipeline.land_slice import publish_next, publish_slice, stage_range
from mirror_assets.pipeline.plan import plan_snapshot, plan_table
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.pipeline.source_check import recorded_columns, table_columns
from mirror_assets.pipeline.stage import stage_attempt
from mirror_assets.source.log import DeltaLog
from mirror_assets.verify.landed import file_continuity
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.landing.staging import CHECKS, position_of, stage_chunk
from mirror_assets_tests.source.handmade import commit_file

_CHUNKS = "slices: {max_rows: 5}"


@pytest.fixture(scope="module")
def _large_orders(spark: SparkSession, _new_orders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(spark, tmp_path_factory.mktemp("large") / "lab")
    shutil.copytree(_new_orders, lab.root)
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'more', 1 FROM range(10, 16)",
        "DELETE FROM {t} WHERE id = 12",
    )
    lab.configure(defaults=_CHUNKS)
    return lab.root


@pytest.fixture
def large(spark: SparkSession, _large_orders: Path, tmp_path: Path) -> Lab:
    """The table at version 4, with three files or more, of which a chunk takes one; some rows are hidden."""
    shutil.copytree(_large_orders, tmp_path / "lab")
    return Lab(spark, tmp_path / "lab")


def _land_first(lab: Lab) -> None:
    """A run that is killed when the first chunk has landed."""
    next(landed_slices(lab.context, lab.replicator))
    assert lab.manifest().loading is not None


def test_a_killed_load_goes_on_at_its_version_while_the_source_moves(large: Lab) -> None:
    _land_first(large)
    assert (large.manifest().covered, large.manifest().kind.value) == (-1, "snapshot")
    result = large.compare()
    assert (result.state, result.reason) == (ReconcileState.LOADING, str(large.manifest().loading))
    large.sql("UPDATE {t} SET name = 'later' WHERE id IN (1, 11)")
    large.configure(defaults="slices: {max_rows: 100}")
    loaded, changed = large.mirror()
    assert [loaded.record.slice, changed.record.slice] == [key(0, 4), key(5, 5)]
    assert loaded.record.chunk is not None
    assert (loaded.record.chunk.number, loaded.record.chunk.of) == (2, 2)
    assert large.manifest().covered == 5
    assert file_continuity(large.store, TABLE, None).problems == ()
    assert large.is_equal


def test_a_partition_is_done_with_its_last_chunk(large: Lab) -> None:
    """As Dagster's assets do it: all chunks but the last have landed when the slice is staged."""
    slice_ = key(0, 4)
    (staged,) = stage_range(large.context, [slice_])
    assert staged is not None
    assert staged.chunk is not None
    assert staged.chunk.is_last
    assert (large.manifest().covered, large.manifest().generation) == (-1, staged.generation - 1)
    (again,) = stage_range(large.context, [slice_])
    assert again is not None
    assert (again.chunk, again.generation) == (staged.chunk, staged.generation)
    run_checks(large.context, again)
    published = publish_slice(large.context, slice_)
    assert (published.outcome, published.manifest.covered) == (Outcome.LANDED, 4)
    assert publish_slice(large.context, slice_).outcome is Outcome.COVERED
    assert list(stage_range(large.context, [slice_])) == [None]
    assert large.is_equal


def test_a_key_in_two_chunks_publishes_nothing(large: Lab) -> None:
    large.sql("INSERT INTO {t} VALUES (1, 'again', 1)")
    with pytest.raises(ChecksFailed, match=r"key_uniqueness: key «id=1» has 2 rows"):
        large.mirror()
    assert large.files == []


def test_a_row_in_place_of_another_in_the_first_chunk_is_found(large: Lab) -> None:
    context = large.context
    plan = plan_snapshot(context, context.log.state(4), epoch=1)
    record = stage_attempt(context, plan.slices[0], plan.position)
    assert record.chunk is not None
    part = large.store.local_path(record.folder.part(record.parts[0].name))
    rows = pq.read_table(part)
    pq.write_table(rows.take([0, *range(rows.num_rows - 1)]), part)
    (found,) = (result for result in check_staged(context, record) if result.check == "key_uniqueness")
    assert "has 2 rows in 1 commit" in found.message


def test_a_load_whose_files_are_gone_begins_again(large: Lab) -> None:
    _land_first(large)
    old = {file.path for file in large.context.log.reopened().snapshot(4).files}
    large.sql("UPDATE {t} SET name = 'new'")
    for path in old - {file.path for file in large.context.log.reopened().snapshot(5).files}:
        (Path(large.uri) / path).unlink()  # as VACUUM does
    told: list[str] = []
    large.mirror(told.append)
    assert any("rebuild, because" in line and "chunks of version 4 have landed" in line for line in told)
    assert (large.manifest().epoch, large.manifest().covered) == (2, 5)
    assert large.is_equal


def test_a_killed_rebuild_goes_on_with_what_is_staged(large: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A staged chunk is lost meanwhile: it is staged again, at the same version."""
    large.configure()
    large.mirror()
    large.configure(defaults=_CHUNKS)
    chunks = len(plan_snapshot(large.context, large.context.log.state(), epoch=2).slices)

    def land_one(context: TableContext, slice_: SliceKey, epoch: int | None = None) -> Published:
        if (manifest := context.manifest()) and manifest.loading:
            raise KeyboardInterrupt
        return publish_next(context, slice_, epoch)

    monkeypatch.setattr(land, "publish_next", land_one)
    with pytest.raises(KeyboardInterrupt):
        rebuild_table(large.context, large.replicator, lambda _: None)
    monkeypatch.undo()
    staged = drive(list_attempts(TABLE), large.store)
    assert sorted(folder.generation for folder in staged) == list(range(1, chunks + 1))
    large.store.delete_tree(next(folder.path for folder in staged if folder.generation == chunks))
    large.sql("DELETE FROM {t} WHERE id = 2")
    assert rebuild_table(large.context, large.replicator, lambda _: None).outcome is Outcome.LANDED
    assert (large.manifest().epoch, large.manifest().generation, large.manifest().covered) == (2, chunks, 4)
    large.mirror()
    assert large.is_equal


_FEED = {"delta.enableChangeDataFeed": "true"}
_SETTINGS = """
landing_zone: {{path: ./landing}}
mirror: {{path: ./mirror}}
tables:
  shop.orders:
    source: ./lake
    keys: [id]
    slices: {{max_rows: {max_rows}}}
"""


def _context(root: Path, max_rows: int = 10) -> TableContext:
    file = root / "mirror.yaml"
    file.write_text(_SETTINGS.format(max_rows=max_rows))
    config = load_config(file)
    (table,) = config.all_tables()
    return TableContext(config, table, DeltaLog(table.source), LocalStore(root / "landing"), _no_spark)


def _no_spark() -> SparkSession:
    raise AssertionError("Spark was asked for")


@pytest.fixture
def lake(tmp_path: Path) -> TableContext:
    """Three files with ten rows each at version 2; then one commit more."""
    for first in (0, 10, 20, 30):
        rows = pa.table({"id": list(range(first, first + 10))})
        write_deltalake(tmp_path / "lake", rows, mode="append", configuration=None if first else _FEED)
    return _context(tmp_path)


@pytest.fixture
def loading(lake: TableContext) -> TableContext:
    """The same, of whose version 2 the first file has landed as a chunk."""
    _cover_first(lake, recorded_columns(table_columns(lake.table, lake.log.state(2).schema)))
    return lake


def _cover_first(context: TableContext, columns: tuple[Column, ...]) -> None:
    state = context.log.state(2)
    staged = stage_chunk(context.store, position_of(context.store), end=1, of=3, last=2)
    source = {"source_table_id": state.table_id, "source_schema": state.schema_string, "columns": columns}
    source |= {"commit_digest": state.digest}
    drive(publish(TABLE, staged.model_copy(update=source), CHECKS), context.store)


def test_a_small_table_is_loaded_at_once(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lake", pa.table({"id": [1, 2]}), configuration=_FEED)
    for max_rows in (10, 1):  # a file is never cut
        (planned,) = plan_table(_context(tmp_path, max_rows)).slices
        assert (planned.rows, planned.chunk) == (2, None)


def test_what_is_left_of_a_load_is_planned_at_its_version(loading: TableContext) -> None:
    plan = plan_table(loading)
    assert plan.state.version == 3
    assert [(planned.first, planned.last, str(planned.chunk), planned.rows) for planned in plan.slices] == [
        (0, 2, "2 of 3", 10),
        (0, 2, "3 of 3", 10),
    ]
    assert [slice_key(planned) for planned in plan.partitions] == [SliceKey(1, 0, 2)]


@pytest.mark.usefixtures("loading")
def test_other_limits_split_the_remaining_rows_again(tmp_path: Path) -> None:
    (planned,) = plan_table(_context(tmp_path, max_rows=25)).slices
    assert (str(planned.chunk), planned.rows, planned.is_snapshot) == ("2 of 2", 20, True)


def test_status_shows_the_progress_of_a_load_in_chunks(
    loading: TableContext, capsys: pytest.CaptureFixture[str]
) -> None:
    status(loading.config.file, [], as_json=False)
    assert "loading: 1 of 3 chunks of version 2" in " ".join(capsys.readouterr().out.split())


def test_another_snapshot_has_to_wait(loading: TableContext) -> None:
    with raises(StopError, ErrorCode.SLICE_NOT_READY, match="loading: 1 of 3 chunks of version 2"):
        list(stage_range(loading, [SliceKey(1, 0, 3)]))
    with raises(StopError, ErrorCode.SLICE_NOT_READY):
        publish_slice(loading, SliceKey(1, 0, 3))


def _clean_up(lake: Path) -> None:
    DeltaTable(lake).create_checkpoint()
    for version in (0, 1, 2):
        commit_file(lake, version).unlink()


def _replace(lake: Path) -> None:
    lake.rename(lake.with_name("old"))
    for number in range(3):
        write_deltalake(lake, pa.table({"id": [1, 2]}), mode="append", configuration=None if number else _FEED)


def _roll_back(lake: Path) -> None:
    for version in (2, 3):
        commit_file(lake, version).unlink()
    for first in (20, 30):
        write_deltalake(lake, pa.table({"id": list(range(first, first + 10))}), mode="append")


@pytest.mark.parametrize(
    ("harm", "row", "match"),
    [
        (_clean_up, SNAPSHOT_LOST, "1 of 3 chunks of version 2 have landed"),
        (_replace, SOURCE_BROKE, "another table now"),
        (_roll_back, SOURCE_BROKE, "its log was rolled back, so this is another version, and loading: 1 of 3"),
    ],
)
def test_a_snapshot_that_can_not_be_read_to_its_end_is_a_reason_to_rebuild(
    loading: TableContext, tmp_path: Path, harm: Callable[[Path], None], row: ErrorRow[MirrorError], match: str
) -> None:
    harm(tmp_path / "lake")
    with raises_row(row, match=match):
        plan_table(loading)


def test_columns_that_would_land_otherwise_are_a_reason_to_rebuild(lake: TableContext) -> None:
    _cover_first(lake, (Column(name="id", type="int"),))
    with raises_row(SOURCE_BROKE, match="its columns or `where` are not the landed ones, and loading: 1 of 3 chunks"):
        plan_table(lake)
