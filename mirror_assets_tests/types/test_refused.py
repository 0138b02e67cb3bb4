"""Columns that can't land: `mirror-assets run` names them, and lands nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.markers import ROW_MARKER
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.operations.features import FEED


def _void(lab: Lab) -> None:
    lab.sql("CREATE TABLE {t} (id INT, nothing VOID) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")


def _named_like_the_feed(lab: Lab) -> None:
    """Without a feed: Delta would not switch it on."""
    write_deltalake(lab.uri, pa.table({"id": [1], "_change_type": ["x"]}))


def _named_like_the_marker(lab: Lab) -> None:
    write_deltalake(lab.uri, pa.table({"id": [1], ROW_MARKER: [0]}), configuration=FEED)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_void, "error: shop.orders: column `nothing` has type void, which a landing file can't hold."),
        (_named_like_the_feed, "'_change_type' has the name of a column of Delta's change data feed; rename it"),
        (_named_like_the_marker, f"'{ROW_MARKER}' has the name of the landing file's row marker; rename it"),
    ],
)
def test_a_column_that_can_not_land_is_named(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Lab], None],
    message: str,
) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure()
    make(lab)
    assert main(["run", "--config", str(lab.config_file)]) == 2
    assert message in capsys.readouterr().err
    assert lab.files == []
