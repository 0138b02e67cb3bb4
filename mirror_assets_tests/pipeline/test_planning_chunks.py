"""Planning a load in chunks, from the log of a real table and a manifest that says what landed. No Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.cli.show import status
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.landing.format import Column
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SNAPSHOT_LOST, SOURCE_BROKE
from mirror_assets.pipeline.land_slice import publish_slice, stage_range
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.pipeline.source_check import recorded_columns, table_columns
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage_chunk
from mirror_assets_tests.source.handmade import commit_file

KEY = SliceKey(1, 0, 2)
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
    _land_first(lake, recorded_columns(table_columns(lake.table, lake.log.state(2).schema)))
    return lake


def _land_first(context: TableContext, columns: tuple[Column, ...]) -> None:
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
    assert [slice_key(planned) for planned in plan.partitions] == [KEY]


@pytest.mark.usefixtures("loading")
def test_other_limits_split_the_remaining_rows_again(tmp_path: Path) -> None:
    (planned,) = plan_table(_context(tmp_path, max_rows=25)).slices
    assert (str(planned.chunk), planned.rows, planned.is_snapshot) == ("2 of 2", 20, True)


def test_a_load_in_chunks_is_one_partition_and_status_shows_its_progress(
    loading: TableContext, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [slice_key(planned) for planned in plan_table(loading).partitions] == [KEY]
    status(loading.config.file, [], as_json=False)
    assert "loading: 1 of 3 chunks of version 2" in " ".join(capsys.readouterr().out.split())


def test_another_snapshot_has_to_wait(loading: TableContext) -> None:
    with raises(StopError, ErrorCode.SLICE_NOT_READY, match="loading: 1 of 3 chunks of version 2"):
        list(stage_range(loading, [SliceKey(1, 0, 3)]))
    with raises(StopError, ErrorCode.SLICE_NOT_READY):
        publish_slice(loading, SliceKey(1, 0, 3))


def test_a_version_that_left_the_log_is_a_reason_to_rebuild(loading: TableContext, tmp_path: Path) -> None:
    DeltaTable(tmp_path / "lake").create_checkpoint()
    for version in (0, 1, 2):
        commit_file(tmp_path / "lake", version).unlink()
    with raises_row(SNAPSHOT_LOST, match="1 of 3 chunks of version 2 have landed"):
        plan_table(loading)


def test_a_source_that_was_replaced_is_a_reason_to_rebuild(loading: TableContext, tmp_path: Path) -> None:
    (tmp_path / "lake").rename(tmp_path / "old")
    for number in range(3):
        rows, feed = pa.table({"id": [1, 2]}), None if number else _FEED
        write_deltalake(tmp_path / "lake", rows, mode="append", configuration=feed)
    with raises_row(SOURCE_BROKE, match="another table now"):
        plan_table(loading)


def test_a_version_that_was_rewritten_is_a_reason_to_rebuild(loading: TableContext, tmp_path: Path) -> None:
    for version in (2, 3):
        commit_file(tmp_path / "lake", version).unlink()
    for first in (20, 30):
        write_deltalake(tmp_path / "lake", pa.table({"id": list(range(first, first + 10))}), mode="append")
    with raises_row(SOURCE_BROKE, match="its log was rolled back, so this is another version, and loading: 1 of 3"):
        plan_table(loading)


def test_columns_that_would_land_otherwise_are_a_reason_to_rebuild(lake: TableContext) -> None:
    _land_first(lake, (Column(name="id", type="int"),))
    with raises_row(SOURCE_BROKE, match="its columns or `where` are not the landed ones, and loading: 1 of 3 chunks"):
        plan_table(lake)
