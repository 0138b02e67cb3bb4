"""Advice on bad layouts, and none on others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.features.direct_lake.footers import Coding
from mirror_assets.features.direct_lake.layout import AdviceTopic, LayoutReport, PartitionSummary, SizeSummary, advice
from mirror_assets_tests.features.direct_lake.tables import report

_MB = 10**6


def _files(sizes: list[int]) -> SizeSummary:
    return SizeSummary.of(sizes, (25 * _MB, 2_000 * _MB))


def _groups(rows: list[int]) -> SizeSummary:
    return SizeSummary.of(rows, (_MB, 16 * _MB))


def _partitions(count: int) -> PartitionSummary:
    return PartitionSummary(("p",), count, 1, 1, 1.0)


@pytest.fixture
def fine(tmp_path: Path) -> LayoutReport:
    """A table of 20 million rows in ten V-Ordered files, in all that advice depends on."""
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


_MANY_SMALL = {"files": _files([500 * _MB] * 5 + [_MB] * 9), "vorder_files": 14}


@pytest.mark.parametrize(
    ("changes", "topics"),
    [
        ({}, []),
        (_MANY_SMALL, [AdviceTopic.SMALL_FILES]),
        ({"files": _files([500 * _MB] * 2 + [_MB] * 8)}, []),
        (_MANY_SMALL | {"partitions": _partitions(14)}, []),
        ({"files": _files([3_000 * _MB] + [500 * _MB] * 9)}, [AdviceTopic.LARGE_FILES]),
        ({"row_groups": _groups([100_000] * 200)}, [AdviceTopic.ROW_GROUPS]),
        ({"row_groups": _groups([1_500_000, 500_000] * 10)}, []),  # the last group of each file may be small
        ({"rows": 900_000, "row_groups": _groups([100_000] * 9)}, []),
        ({"vorder_files": 4, "vorder_percent": 30}, [AdviceTopic.VORDER]),
        ({"hidden_rows": 980_000}, []),
        ({"hidden_rows": 1_020_000}, [AdviceTopic.VECTORS]),
        ({"much_hidden_files": 1}, [AdviceTopic.VECTORS]),
        ({"partitions": _partitions(200)}, []),
        ({"partitions": _partitions(201)}, [AdviceTopic.PARTITIONS]),
    ],
)
def test_each_topic_has_a_limit(fine: LayoutReport, changes: dict[str, object], topics: list[AdviceTopic]) -> None:
    assert _topics(replace(fine, **changes)) == topics  # type: ignore[arg-type]


def test_advice_has_numbers_and_what_to_do(fine: LayoutReport) -> None:
    bad = replace(fine, row_groups=_groups([100_000] * 200), vorder_files=4, vorder_percent=30)
    groups, vorder = map(str, advice(bad))
    assert groups.startswith("200 of 200 row groups have less than 1 million rows: make OPTIMIZE")
    assert vorder.startswith("6 of 10 files are not V-Ordered: run OPTIMIZE … VORDER in Fabric")


_MIXED = {"codings": {Coding.MIXED: 6, Coding.DICTIONARY: 4}}


@pytest.mark.parametrize(
    ("changes", "topics"),
    [
        ({"is_dropped": True, "compressed": 500 * _MB}, [AdviceTopic.DROPPED]),
        ({"is_dropped": True, "compressed": 5 * _MB}, []),
        (_MIXED, [AdviceTopic.DICTIONARIES]),
        (_MIXED | {"share": 9}, []),
        (_MIXED | {"physical_types": ("BOOLEAN",)}, []),
    ],
)
def test_columns_have_limits_also(fine: LayoutReport, changes: dict[str, object], topics: list[AdviceTopic]) -> None:
    (column,) = fine.columns
    assert _topics(replace(fine, columns=(replace(column, **changes),))) == topics  # type: ignore[arg-type]


def _loaded(path: Path, loads: int, rows: int) -> LayoutReport:
    """A table of this many loads of different numbers; above 131,072 rows, dictionaries are too large."""
    for _ in range(loads):
        write_deltalake(path, pa.table({"x": pa.array(range(rows), pa.float64())}), mode="append")
    return report(path)


def test_a_real_table_of_many_small_loads(tmp_path: Path) -> None:
    assert _topics(_loaded(tmp_path / "million", 9, 140_000)) == [
        AdviceTopic.SMALL_FILES,
        AdviceTopic.ROW_GROUPS,
        AdviceTopic.VORDER,
        AdviceTopic.DICTIONARIES,
    ]


def test_only_the_number_of_files_matters_in_a_small_table(tmp_path: Path) -> None:
    assert _topics(_loaded(tmp_path / "many", 12, 3_000)) == [AdviceTopic.SMALL_FILES]
    assert _topics(_loaded(tmp_path / "few", 2, 3_000)) == []
