"""Partitions as conditions."""

from __future__ import annotations

import pytest

from mirror_assets.features.direct_lake.sql import PartitionKey, literal, partition_predicate
from mirror_assets_tests.features.direct_lake.planned_tables import snapshot

_TWO = {"year": "integer", "month": "string"}


@pytest.mark.parametrize(
    ("types", "keys", "condition"),
    [
        ({"m": "string"}, [("a",)], "`m` = 'a'"),
        ({"m": "string"}, [("a",), (None,), ("b",)], "`m` = 'a' OR `m` IS NULL OR `m` = 'b'"),
        ({"a b`c": "long"}, [("-5",)], "`a b``c` = -5"),
        (
            _TWO,
            [("2024", "01"), (None, "02")],
            "`year` = 2024 AND `month` = '01' OR `year` IS NULL AND `month` = '02'",
        ),
    ],
)
def test_a_condition_selects_each_partition(types: dict[str, str], keys: list[PartitionKey], condition: str) -> None:
    assert partition_predicate(snapshot([], types).metadata, keys) == condition


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        ("it's \\ so", "string", r"'it\'s \\ so'"),
        ("x", "varchar(3)", "'x'"),
        ("1", "tinyint", "1"),
        ("true", "boolean", "true"),
        ("1.50", "decimal(5,2)", "1.50"),
        ("1.1", "float", "CAST('1.1' AS FLOAT)"),
        ("NaN", "double", "CAST('NaN' AS DOUBLE)"),
        ("2024-01-02", "date", "DATE '2024-01-02'"),
        ("2024-01-02T03:04:05.006000Z", "timestamp", "TIMESTAMP '2024-01-02T03:04:05.006000Z'"),
        ("2024-01-02 03:04:05", "timestamp_ntz", "TIMESTAMP_NTZ '2024-01-02 03:04:05'"),
    ],
)
def test_a_value_is_written_as_its_type(value: str, kind: str, written: str) -> None:
    assert literal(value, kind) == written
