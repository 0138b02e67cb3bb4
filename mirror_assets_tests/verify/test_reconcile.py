"""Reconcile against a real source: equal, every kind of difference, missing, and a version that is gone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.errors import ErrorCode, RetryError, StopError
from mirror_assets.landing.generations import EqualVersions
from mirror_assets.markers import JSON_OPTIONS
from mirror_assets.spark_api import arrow_table
from mirror_assets.standin.errors import MirrorUnreadable
from mirror_assets.verify.reconcile import reconcile
from mirror_assets.verify.reconciliation import (
    DifferenceSample,
    ReconcileRequest,
    ReconcileState,
    Reconciliation,
    Share,
    Side,
)
from mirror_assets_tests.errors import raises
from mirror_assets_tests.spark_4 import IS_SPARK_4

_SOURCE = """
    SELECT * FROM VALUES
      (1, 'a', 1.5D, 2.50BD, named_struct('x', 1, 'y', CAST(NULL AS STRING)), array(1, NULL), map('m', 1)),
      (2, 'b', double('NaN'), NULL, NULL, array(), NULL),
      (3, NULL, -0.0D, 0.01BD, named_struct('x', 2, 'y', 'é'), NULL, map()),
      (4, 'd', NULL, NULL, NULL, NULL, NULL),
      (5, NULL, NULL, NULL, named_struct('x', 5, 'y', CAST(NULL AS STRING)), NULL, NULL),
      (6, NULL, NULL, NULL, NULL, array(6, NULL), NULL),
      (7, NULL, NULL, NULL, NULL, NULL, NULL),
      (NULL, 'null key', NULL, NULL, NULL, NULL, NULL),
      (9, 'deleted', NULL, NULL, NULL, NULL, NULL)
    AS t(k, `v w`, f, d, s, a, m)
"""
_ROWS = 8
_COLUMNS = (
    ("k", "int"),
    ("v w", "string"),
    ("f", "double"),
    ("d", "decimal(3,2)"),
    ("s", "string"),
    ("a", "string"),
    ("m", "string"),
)
_NESTED = ("s", "a", "m")
_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


@dataclass(frozen=True)
class Lake:
    """A source with deletion vectors, and a mirror that equals it."""

    spark: SparkSession
    source: Path
    mirror: Path

    @property
    def root(self) -> Path:
        return self.mirror.parent

    def request(self) -> ReconcileRequest:
        source = DeltaTable(str(self.source))
        return ReconcileRequest(
            table="t",
            source=str(self.source),
            source_id=str(source.metadata().id),
            version=source.version(),
            keys=("k",),
            columns=_COLUMNS,
            mirror=str(self.mirror),
            opened_for="a test",
        )

    def reconcile(self, **changes: object) -> Reconciliation:
        return reconcile(self.spark, replace(self.request(), **changes))  # type: ignore[arg-type]

    def landed(self) -> DataFrame:
        source = self.spark.read.format("delta").load(str(self.source))
        return source.withColumns({name: F.to_json(name, dict(JSON_OPTIONS)) for name in _NESTED})

    def mirror_rows(self) -> pa.Table:
        return DeltaTable(str(self.mirror)).to_pyarrow_table()

    def change(self, key: int, column: str, value: object) -> None:
        """Set one value of the mirror."""
        rows = self.mirror_rows().to_pylist()
        changed = [{**row, column: value} if row["k"] == key else row for row in rows]
        self.overwrite(pa.Table.from_pylist(changed, schema=self.mirror_rows().schema))

    def append_row(self, at: int, **values: object) -> None:
        """Add a copy of a row of the mirror, with these values."""
        rows = self.mirror_rows()
        copy = {**rows.slice(at, 1).to_pylist()[0], **values}
        self.overwrite(pa.concat_tables([rows, pa.Table.from_pylist([copy], schema=rows.schema)]))

    def remove(self, key: int) -> None:
        """Remove the rows of a key from the mirror."""
        rows = self.mirror_rows()
        self.overwrite(rows.filter(pc.coalesce(pc.not_equal(rows["k"], key), pa.scalar(value=True))))

    def overwrite(self, rows: pa.Table) -> None:
        write_deltalake(str(self.mirror), rows, mode="overwrite", schema_mode="overwrite")


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake as files, made once."""
    root = tmp_path_factory.mktemp("lake")
    writer = spark.sql(_SOURCE).repartition(1).write.format("delta")
    writer.options(**_PROPERTIES).save(str(root / "source"))
    SparkTable.forPath(spark, str(root / "source")).delete("k = 9")
    lake = Lake(spark, root / "source", root / "mirror")
    write_deltalake(str(lake.mirror), arrow_table(lake.landed()))
    return root


@pytest.fixture
def lake(spark: SparkSession, made: Path, tmp_path: Path) -> Lake:
    """A copy of the lake, to be damaged."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return Lake(spark, tmp_path / "source", tmp_path / "mirror")


def _sample(
    key: str | None, side: Side, columns: Sequence[str] = (), rows: tuple[int, int] = (1, 1)
) -> DifferenceSample:
    return DifferenceSample((key,), side, tuple(columns), *rows)


def test_equal(lake: Lake) -> None:
    assert "deletionVectors" in (DeltaTable(str(lake.source)).protocol().reader_features or [])
    assert list(lake.source.rglob("deletion_vector*"))
    result = lake.reconcile()
    assert (result.state, result.source_rows, result.mirror_rows) == (ReconcileState.EQUAL, _ROWS, _ROWS)
    assert (result.columns, result.samples, result.ignored_columns) == ((), (), ())
    assert result.seconds > 0
    assert lake.reconcile(keys=()).state is ReconcileState.EQUAL


def test_the_summary_of_an_equal_mirror_says_from_which_version_on() -> None:
    def summary(state: ReconcileState, since: int | None) -> str:
        return Reconciliation("t", state, 5, since=since).summary

    assert summary(ReconcileState.EQUAL, None) == "equal to source"
    assert summary(ReconcileState.EQUAL, 0) == "equal to source in what landed since 0"
    assert summary(ReconcileState.DIFFERENT, 3) == "different"


def test_each_differing_value_is_found_with_its_key_and_column(lake: Lake) -> None:
    changes = [
        (1, "v w", "A"),
        (2, "f", 0.0),
        (3, "v w", ""),
        (4, "v w", None),
        (5, "s", '{"x":50}'),
        (6, "a", "[6]"),
        (7, "m", "{}"),
    ]
    for key, column, value in changes:
        lake.change(key, column, value)
    result = lake.reconcile()
    assert (result.state, result.source_rows, result.mirror_rows) == (ReconcileState.DIFFERENT, _ROWS, _ROWS)
    assert result.columns == ("v w", "f", "s", "a", "m")
    assert result.samples == tuple(_sample(str(key), Side.DIFFERS, [column]) for key, column, _ in changes)


def test_missing_extra_and_doubled_rows(lake: Lake) -> None:
    rows = lake.mirror_rows()
    lake.overwrite(rows.filter(rows["k"].is_valid()))
    lake.change(3, "k", 70)
    lake.append_row(0)
    result = lake.reconcile()
    assert (result.state, result.source_rows, result.mirror_rows) == (ReconcileState.DIFFERENT, _ROWS, _ROWS)
    assert result.samples == (
        _sample(None, Side.ONLY_IN_SOURCE, rows=(1, 0)),
        _sample("1", Side.DIFFERS, [name for name, _ in _COLUMNS[1:]], rows=(1, 2)),
        _sample("3", Side.ONLY_IN_SOURCE, rows=(1, 0)),
        _sample("70", Side.ONLY_IN_MIRROR, rows=(0, 1)),
    )


def test_without_a_snapshot_the_mirrors_rows_are_found_by_all_their_values_null_or_not(lake: Lake) -> None:
    """Every row but two has a NULL."""
    rows = lake.mirror_rows()
    lake.overwrite(rows.filter(pc.invert(pc.is_in(rows["k"], pa.array([1, 4], pa.int32())))))
    result = lake.reconcile(keys=(), since=1)
    assert (result.state, result.source_rows, result.mirror_rows) == (ReconcileState.EQUAL, _ROWS - 2, _ROWS - 2)
    lake.change(7, "v w", "other")
    assert lake.reconcile(keys=(), since=1).state is ReconcileState.DIFFERENT


def test_without_keys_whole_rows_are_compared(lake: Lake) -> None:
    lake.change(1, "v w", "A")
    result = lake.reconcile(keys=())
    assert result.state is ReconcileState.DIFFERENT
    assert [(sample.key[:2], sample.side) for sample in result.samples] == [
        (("1", "A"), Side.ONLY_IN_MIRROR),
        (("1", "a"), Side.ONLY_IN_SOURCE),
    ]


def test_samples_are_few(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.verify.reconcile._SAMPLES", 2)
    lake.overwrite(lake.mirror_rows().slice(0, 0))
    assert [sample.key for sample in lake.reconcile().samples] == [(None,), ("1",)]


def _equal_at(lake: Lake) -> EqualVersions:
    """Return the versions at which they are equal."""
    found = lake.reconcile().equal_versions
    assert found is not None
    return found


def test_unchanged_tables_that_were_equal_are_not_read(lake: Lake) -> None:
    equal_at = _equal_at(lake)
    for file in (*lake.mirror.rglob("*.parquet"), *lake.source.rglob("*.parquet")):
        file.unlink()
    result = lake.reconcile(equal_at=equal_at)
    assert (result.state, result.is_unchanged) == (ReconcileState.EQUAL, True)
    assert result.source_rows == result.mirror_rows == _ROWS


def test_rows_are_read_where_one_of_the_tables_has_changed(lake: Lake) -> None:
    equal_at = _equal_at(lake)
    SparkTable.forPath(lake.spark, str(lake.source)).update("k = 1", {"f": "7"})
    lake.change(1, "f", 7.0)
    result = lake.reconcile(equal_at=equal_at)
    assert (result.state, result.is_unchanged) == (ReconcileState.EQUAL, False)
    now = result.equal_versions
    assert now is not None
    assert (now.version, now.mirror_version) == (equal_at.version + 1, equal_at.mirror_version + 1)
    lake.change(3, "f", 0.0)
    assert lake.reconcile(equal_at=now).state is ReconcileState.DIFFERENT


@pytest.mark.parametrize("side", ["source", "mirror"])
def test_rows_are_read_where_another_table_has_the_same_version(lake: Lake, side: str) -> None:
    other = _equal_at(lake).model_copy(update={f"{side}_id": "of another table"})
    assert not lake.reconcile(equal_at=other).is_unchanged


def test_a_column_dropped_in_the_mirror_since_an_equal_result_is_found(lake: Lake) -> None:
    mirror = f"delta.`{lake.mirror}`"
    lake.spark.sql(f"ALTER TABLE {mirror} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    equal_at = _equal_at(lake)
    lake.spark.sql(f"ALTER TABLE {mirror} DROP COLUMN f")
    assert lake.reconcile(equal_at=equal_at).columns == ("f",)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of any size are compared by shares."""
    monkeypatch.setattr("mirror_assets.verify.reconcile._LARGE_BYTES", 0)


def test_small_tables_are_compared_whole(lake: Lake) -> None:
    lake.change(5, "s", "{}")
    result = lake.reconcile(share=Share(1, 6))
    assert (result.share, result.columns) == (None, ("s",))


@pytest.mark.usefixtures("large")
def test_each_difference_is_found_by_one_of_the_shares(lake: Lake) -> None:
    shares = [Share(number, 3) for number in (1, 2, 3)]
    assert {lake.reconcile(share=share).state for share in shares} == {ReconcileState.EQUAL}
    for column, value in (("v w", "x"), ("f", 9.5), ("d", 1), ("s", "s"), ("a", "a"), ("m", "m")):
        lake.change(2, column, value)
    found = [lake.reconcile(share=share).columns for share in shares]
    assert found == [("v w", "s"), ("f", "a"), ("d", "m")]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("keys", [("k",), ()])
def test_every_share_finds_a_lost_and_a_doubled_row(lake: Lake, keys: tuple[str, ...]) -> None:
    lake.append_row(0)
    lake.remove(6)
    for number in (1, 3):
        result = lake.reconcile(keys=keys, share=Share(number, 3))
        assert (result.state, result.share, result.ignored_columns) == (ReconcileState.DIFFERENT, Share(number, 3), ())


@pytest.mark.usefixtures("large")
def test_without_keys_the_last_share_finds_values_swapped_between_rows(lake: Lake) -> None:
    lake.change(1, "v w", "b")
    lake.change(2, "v w", "a")
    states = [lake.reconcile(keys=(), share=Share(number, 8)).state for number in (2, 8)]
    assert states == [ReconcileState.EQUAL, ReconcileState.DIFFERENT]


def test_phases_are_reported(lake: Lake) -> None:
    lake.change(1, "f", 2.0)
    phases: list[str] = []
    reconcile(lake.spark, lake.request(), phases.append)
    assert phases == [
        "reading version 1 of the source",
        "8 rows in the source; reading the mirror",
        "1 of 16,384 buckets of keys differ; comparing their rows",
    ]


def test_columns_that_the_source_dropped_are_ignored_but_reported(lake: Lake) -> None:
    lake.overwrite(lake.mirror_rows().append_column("old", [list(range(_ROWS))]))
    result = lake.reconcile(columns=(*_COLUMNS, ("old", "bigint")))
    assert (result.state, result.ignored_columns) == (ReconcileState.EQUAL, ("old",))


def test_columns_that_are_not_landed_are_not_compared(lake: Lake) -> None:
    lake.overwrite(lake.mirror_rows().select(["k", "f"]))
    assert lake.reconcile(columns=(("k", "int"), ("f", "double"))).state is ReconcileState.EQUAL


def test_landed_columns_that_the_mirror_lacks_or_has_in_another_type_differ(lake: Lake) -> None:
    rows = lake.mirror_rows().drop_columns(["d"])
    at = rows.schema.get_field_index("f")
    lake.overwrite(rows.set_column(at, "f", rows["f"].cast(pa.float32())))
    result = lake.reconcile()
    assert (result.state, result.columns) == (ReconcileState.DIFFERENT, ("f", "d"))
    assert result.source_rows == result.mirror_rows == _ROWS
    assert [sample.key for sample in result.samples] == [("1",), ("3",)]


def test_an_older_version_is_compared_as_it_was(lake: Lake) -> None:
    SparkTable.forPath(lake.spark, str(lake.source)).update("k = 1", {"f": "7"})
    assert lake.reconcile().state is ReconcileState.DIFFERENT
    assert lake.reconcile(version=1).state is ReconcileState.EQUAL


def test_a_mirror_dropped_and_made_again_is_read_afresh(lake: Lake) -> None:
    assert lake.reconcile().state is ReconcileState.EQUAL
    rows = lake.mirror_rows().slice(0, 2)
    shutil.rmtree(lake.mirror)
    write_deltalake(str(lake.mirror), rows)
    assert lake.reconcile().mirror_rows == 2


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (1, "FAILED_READ_FILE.FILE_NOT_EXIST" if IS_SPARK_4 else "SparkFileNotFoundException"),
        (99, "DELTA_VERSION_NOT_FOUND" if IS_SPARK_4 else "VersionNotFoundException"),
    ],
)
def test_a_version_is_gone_whose_files_were_vacuumed_or_that_the_log_does_not_know(
    lake: Lake, version: int, why: str
) -> None:
    if version == 1:
        for file in lake.source.rglob("*.parquet"):
            file.unlink()
    with raises(RetryError, ErrorCode.COVERED_VERSION_GONE, match=rf"version {version} of .* \({why}\)"):
        lake.reconcile(version=version)


def test_no_source_is_an_error_of_the_source(lake: Lake, tmp_path: Path) -> None:
    with raises(StopError, ErrorCode.SOURCE_UNREADABLE):
        lake.reconcile(source=str(tmp_path / "none"), version=0)


def test_a_mirror_is_missing_or_an_error_of_the_mirror(lake: Lake) -> None:
    assert lake.reconcile(mirror=f"{lake.mirror}_none").state is ReconcileState.MISSING
    for file in lake.mirror.glob("*.parquet"):
        file.unlink()
    with pytest.raises(MirrorUnreadable):
        lake.reconcile()
