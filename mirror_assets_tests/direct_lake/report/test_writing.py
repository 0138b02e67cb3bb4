"""Settings for writers: for those who wrote the files, and only where sizes are bad."""

from __future__ import annotations

import pytest

from mirror_assets.direct_lake.advice import Advice, Topic
from mirror_assets.direct_lake.maintenance.plan_values import MaintenanceInput
from mirror_assets.direct_lake.maintenance.writer_settings import settings_for_writers

_SPARK, _RUST = "parquet-mr version 1.17.0 (build x)", "delta-rs version py-1.6.6"


@pytest.mark.parametrize(
    ("topic", "writers", "spark", "rust"),
    [
        (Topic.SMALL_FILES, {_SPARK: 9}, True, False),
        (Topic.ROW_GROUPS, {_RUST: 9}, False, True),
        (Topic.LARGE_FILES, {_SPARK: 1, _RUST: 2}, True, True),
        (Topic.VORDER, {_SPARK: 9, _RUST: 1}, False, False),
    ],
)
def test_they_are_for_who_wrote_the_files(topic: Topic, writers: dict[str, int], spark: bool, rust: bool) -> None:
    found = settings_for_writers("t", [Advice(topic, "", "")], MaintenanceInput(), writers)
    statements = " ".join(setting.statement for setting in found)
    assert ("SET parquet.block.row.count.limit" in statements) is spark
    assert ("WriterProperties" in statements) is rust
