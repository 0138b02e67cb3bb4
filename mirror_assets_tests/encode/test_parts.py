"""Every file holds the rows of its part, whatever the number of parts and however full they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode import changes
from mirror_assets.encode.changes import ChangesSlice, encode_changes
from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION
from mirror_assets.encode.part_assignment import EncodeGroup, int_with_hash, shuffle_key
from mirror_assets.errors import StopError
from mirror_assets.landing.names import part_place
from mirror_assets.source.actions import Metadata
from mirror_assets.source.batching import PartAssignment
from mirror_assets.source.scan import RowKind, Scan, ScannedFile
from mirror_assets.source.schema import LandedColumn
from mirror_assets.spark_api import arrow_frame

_COLUMNS = (LandedColumn("id", "bigint"), LandedColumn("version", "bigint"))
_TARGET = 50


def _scan(versions: Sequence[int]) -> Scan:
    """A scan of insertions; what it reads is patched."""
    files = (ScannedFile(f"{version}.parquet", 1, {}, version, RowKind.INSERT) for version in versions)
    return Scan("nowhere", Metadata("table-1", "{}"), tuple(files), feed=True)


def _given(spark: SparkSession, patch: pytest.MonkeyPatch, rows: Sequence[int]) -> None:
    """A scan in which commit n, from 1, inserts so many rows; it is shuffled once already, as a scan may be."""
    versions = [version for version, count in enumerate(rows, 1) for _ in range(count)]
    kinds = ["insert"] * len(versions)
    table = {"id": [*range(len(versions))], "version": versions, COMMIT_VERSION: versions, CHANGE_TYPE: kinds}
    types = [pa.int64(), pa.int64(), pa.int64(), pa.string()]
    schema = pa.schema(list(zip(table, types, strict=True)))
    frame = arrow_frame(spark, pa.table(table, schema)).repartition(3)

    def read(_spark: SparkSession, scan: Scan) -> DataFrame:
        return frame.where(F.col(COMMIT_VERSION).isin([file.version for file in scan.files]))

    patch.setattr(changes, "read_scan", read)


def _encoded(spark: SparkSession, assignments: Sequence[PartAssignment], folder: Path) -> tuple[EncodeGroup, ...]:
    scan = _scan([assignment.version for assignment in assignments])
    slice_ = ChangesSlice("t", scan, ("id",), _COLUMNS, tuple(assignments), _TARGET)
    return tuple(one.group for one in encode_changes(spark, slice_, str(folder), {}))


def _files(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """The files in order: the name of each, and the commits of its rows."""
    for file in sorted(folder.rglob("*.parquet")):
        name = file.relative_to(folder).as_posix()
        if versions := pq.read_table(file, columns=["version"])["version"].to_pylist():
            yield name, versions


def _require_in_order(groups: Sequence[EncodeGroup], folder: Path, rows: Sequence[int]) -> None:
    """Each file has the rows of the commits that its name stands for, in order; none is missing."""
    every: list[int] = []
    for name, versions in _files(folder):
        place = part_place(name)
        assert place
        first, last = groups[place.write].commits_of(place.partition)
        assert first <= min(versions) <= max(versions) <= last, name
        every += versions
    assert every == sorted(every)
    assert every == [version for version, count in enumerate(rows, 1) for _ in range(count)]


_SHAPES: dict[str, Callable[[int], int]] = {
    "even": lambda _: 5,
    "skewed": lambda part: 200 if part % 7 == 2 else 1,
    "empty": lambda part: 4 if part % 3 == 1 else 0,
    "one commit over all": lambda _: 6,
}


def _try(spark: SparkSession, patch: pytest.MonkeyPatch, folder: Path, parts: int, shape: str, *, mixed: bool) -> None:
    rows = [_SHAPES[shape](part) for part in range(parts)]
    assignments = [PartAssignment(part + 1, part, 1) for part in range(parts)]
    if shape == "one commit over all":
        rows, assignments = [sum(rows), 3], [PartAssignment(1, 0, parts), PartAssignment(2, parts, 1)]
    if mixed:  # every third commit lands unpaired, in a run of its own
        assignments = [replace(one, unpaired=one.version % 3 == 0) for one in assignments]
    _given(spark, patch, rows)
    _require_in_order(_encoded(spark, assignments, folder), folder, rows)


def test_a_shuffle_key_has_the_hash_of_its_part(spark: SparkSession) -> None:
    keys = spark.range(5000).select(F.hash(shuffle_key(F.col("id").cast("int"), 5000)).alias("hash"), "id")
    assert keys.where("hash IS DISTINCT FROM id").isEmpty()


def test_an_int_is_found_for_a_hash_of_any_size(spark: SparkSession) -> None:
    hashes = [1 << 16, (1 << 31) - 1, -1, -(1 << 31)]
    row = spark.range(1).select(*(F.hash(F.lit(int_with_hash(hash_)).cast("int")) for hash_ in hashes)).collect()[0]
    assert list(row) == hashes


@pytest.mark.parametrize("parts", range(1, 41))
def test_files_are_in_the_order_of_parts(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    shape = list(_SHAPES)[parts % 4]
    _try(adaptive_spark, monkeypatch, tmp_path / "out", parts, shape, mixed=parts % 8 == 5)


@pytest.mark.soak
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("shape", _SHAPES)
def test_files_are_in_the_order_of_parts_in_every_shape(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str, *, mixed: bool
) -> None:
    for parts in range(1, 41):
        _try(adaptive_spark, monkeypatch, tmp_path / str(parts), parts, shape, mixed=mixed)


def test_rows_in_another_file_than_planned_stop_the_slice(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paired = changes.paired_rows
    _given(adaptive_spark, monkeypatch, [5, 5, 5])
    assignments = [PartAssignment(part + 1, part, 1) for part in range(3)]

    def moved(rows: DataFrame, group: EncodeGroup, *rest: Any) -> DataFrame:  # noqa: ANN401 as it is called
        """As the encoder once had it: Spark groups three partitions into three by where their rows lie."""
        return paired(rows, group, *rest).coalesce(group.parts)

    monkeypatch.setattr(changes, "paired_rows", moved)
    with pytest.raises(StopError, match="into other files than planned"):
        _encoded(adaptive_spark, assignments, tmp_path / "out")


def test_unpaired_rows_are_cut_by_rows(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _given(adaptive_spark, monkeypatch, [300, 300])
    assignments = [PartAssignment(n + 1, 6 * n, 6, unpaired=True) for n in range(2)]
    groups = _encoded(adaptive_spark, assignments, tmp_path / "out")
    assert max(len(versions) for _, versions in _files(tmp_path / "out")) == _TARGET
    _require_in_order(groups, tmp_path / "out", [300, 300])


def test_the_rows_of_a_paired_commit_are_spread_over_its_parts(
    adaptive_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _given(adaptive_spark, monkeypatch, [600])
    _encoded(adaptive_spark, [PartAssignment(1, 0, 6)], tmp_path / "out")
    rows = [len(versions) for _, versions in _files(tmp_path / "out")]
    assert len(rows) == 6
    assert min(rows) > 50
