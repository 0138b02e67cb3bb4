"""How whoever writes a table would write larger files and row groups, where advice calls for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mirror_assets.direct_lake.layout.advice import Advice, Topic
from mirror_assets.direct_lake.maintenance.values import MaintenanceInput
from mirror_assets.direct_lake.maintenance.writers import WriterSetting, delta_rs_settings, writer_settings

_SIZES = (Topic.SMALL_FILES, Topic.LARGE_FILES, Topic.ROW_GROUPS)
# How footers of delta-rs, and of Arrow's Rust below it, begin their `created_by`.
_DELTA_RS = ("delta-rs", "parquet-rs")


def settings_for_writers(
    table: str, advice: Iterable[Advice], wanted: MaintenanceInput, writers: Mapping[str, int]
) -> tuple[WriterSetting, ...]:
    """The settings, for those who wrote the files (counted by `created_by`); none where sizes are fine."""
    if not any(one.topic in _SIZES for one in advice):
        return ()
    by_delta_rs = [name.startswith(_DELTA_RS) for name in writers]
    spark = () if all(by_delta_rs) else writer_settings(table, wanted.sizes, wanted.dialect)
    return (*spark, *(delta_rs_settings(wanted.sizes) if any(by_delta_rs) else ()))
