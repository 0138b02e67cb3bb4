"""Advice where a layout is bad, and silence where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.direct_lake.footers import Coding
from mirror_assets.direct_lake.layout import AdviceTopic, LayoutReport, PartitionSummary, SizeSummary, advice
from mirror_assets_tests.direct_lake.tables import report

_MB = 10**6


def _files(sizes: list[int]) -> SizeSummary:
    return SizeSummary.of(sizes, (25 * _MB, 2_000 * _MB))


def _groups(rows: list[int]) -> SizeSummary:
    return SizeSummary.of(rows, (_MB, 16 * _MB))


@pytest.fixture
def fine(tmp_path: Path) -> LayoutReport:
    """A table of 20 million rows in ten V-Ordered files, as far as advice looks at it."""
    write_deltalake(tmp_path, pa.table({"id": [i % 5 for i in range(100)]}))
    return replace(
        report(tmp_path),
        files=_files([500 * _MB] * 10),
        rows=20 * _MB,
        row_groups=_groups([2 * _MB] * 10),
        vorder_files=10,
        vorder_percent=100,
    )


def _topics(found: LayoutReport) -> list[AdviceTopic]:
    return [one.topic for one in advice(found)]


def test_a_fine_layout_needs_none(fine: LayoutReport) -> None:
    assert advice(fine) == ()


def test_small_files_are_to_be_compacted_unless_they_are_few(fine: LayoutReport) -> None:
    many = _files([500 * _MB] * 5 + [_MB] * 9)
    assert _topics(replace(fine, files=many, vorder_files=14, vorder_percent=100)) == [AdviceTopic.SMALL_FILES]
    few = _files([500 * _MB] * 2 + [_MB] * 8)
    assert _topics(replace(fine, files=few)) == []
    one_each = PartitionSummary(("p",), 14, 1, 1, 1.0)
    sized = replace(fine, files=many, vorder_files=14, vorder_percent=100, partitions=one_each)
    assert _topics(sized) == []


def test_large_files(fine: LayoutReport) -> None:
    large = _files([3_000 * _MB] + [500 * _MB] * 9)
    assert _topics(replace(fine, files=large)) == [AdviceTopic.LARGE_FILES]


def test_small_row_groups_matter_in_large_tables(fine: LayoutReport) -> None:
    small = _groups([100_000] * 200)
    (found,) = advice(replace(fine, row_groups=small))
    assert str(found).startswith("200 of 200 row groups have less than 1 million rows: make OPTIMIZE")
    # The last one of each file is what is left over.
    assert _topics(replace(fine, row_groups=_groups([1_500_000, 500_000] * 10))) == []
    assert _topics(replace(fine, rows=900_000, row_groups=_groups([100_000] * 9))) == []


def test_vorder(fine: LayoutReport) -> None:
    (found,) = advice(replace(fine, vorder_files=4, vorder_percent=30))
    assert (found.topic, found.found) == (AdviceTopic.VORDER, "6 of 10 files are not V-Ordered")


@pytest.mark.parametrize(("files", "percent", "told"), [(0, 4.9, False), (0, 5.1, True), (1, 0.1, True)])
def test_deletion_vectors(fine: LayoutReport, files: int, percent: float, told: bool) -> None:
    hiding = replace(fine, much_hidden_files=files, hidden_rows=round(fine.rows * percent / 100))
    assert _topics(hiding) == ([AdviceTopic.VECTORS] if told else [])


@pytest.mark.parametrize(("count", "told"), [(200, False), (201, True)])
def test_too_many_partitions(fine: LayoutReport, count: int, told: bool) -> None:
    partitions = PartitionSummary(("p",), count, 1, 1, 1.0)
    assert _topics(replace(fine, partitions=partitions)) == ([AdviceTopic.PARTITIONS] if told else [])


def test_dropped_columns(fine: LayoutReport) -> None:
    (column,) = fine.columns
    gone = replace(column, is_dropped=True, parquet=replace(column.parquet, compressed=fine.files.total // 10))
    assert _topics(replace(fine, columns=(gone,))) == [AdviceTopic.DROPPED]
    little = replace(gone, parquet=replace(column.parquet, compressed=fine.files.total // 1_000))
    assert _topics(replace(fine, columns=(little,))) == []


def test_dictionaries_that_grew_too_large(fine: LayoutReport) -> None:
    (column,) = fine.columns
    mixed = replace(column, parquet=replace(column.parquet, codings={Coding.MIXED: 6, Coding.DICTIONARY: 4}))
    (found,) = advice(replace(fine, columns=(mixed,)))
    assert (found.topic, found.found[:3]) == (AdviceTopic.DICTIONARIES, "id:")
    assert _topics(replace(fine, columns=(replace(mixed, share=9),))) == []
    flags = replace(mixed, parquet=replace(mixed.parquet, physical_types=("BOOLEAN",)))
    assert _topics(replace(fine, columns=(flags,))) == []


def _loaded(path: Path, loads: int, rows: int) -> LayoutReport:
    """A table of this many loads of numbers that all differ; above 131,072 rows, dictionaries are too large."""
    for _ in range(loads):
        write_deltalake(path, pa.table({"x": pa.array(range(rows), pa.float64())}), mode="append")
    return report(path)


def test_a_table_of_many_small_loads(tmp_path: Path) -> None:
    assert _topics(_loaded(tmp_path / "million", 9, 140_000)) == [
        AdviceTopic.SMALL_FILES,
        AdviceTopic.ROW_GROUPS,
        AdviceTopic.VORDER,
        AdviceTopic.DICTIONARIES,
    ]


def test_of_a_small_table_only_the_number_of_files_matters(tmp_path: Path) -> None:
    assert _topics(_loaded(tmp_path / "many", 12, 3_000)) == [AdviceTopic.SMALL_FILES]
    assert _topics(_loaded(tmp_path / "few", 2, 3_000)) == []
