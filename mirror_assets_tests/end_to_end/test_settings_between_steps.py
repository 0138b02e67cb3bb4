"""A slice that was staged with other settings never lands, and `feed` shows what the settings choose."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import SliceKey
from mirror_assets.pipeline.check_slice import run_checks
from mirror_assets.pipeline.land_slice import publish_slice, stage_range
from mirror_assets_tests.lab import Lab, key
from mirror_assets_tests.landed_rows import Chosen, landed_rows, landing_files, require_equal, row, source_rows

_MASK = "columns: {name: 'sha2(name, 256)'}"


def _stage(lab: Lab, slice_key: SliceKey) -> None:
    (record,) = stage_range(lab.context, [slice_key])
    assert record is not None
    run_checks(lab.context, record)


@pytest.mark.parametrize(
    ("setting", "chosen"),
    [(_MASK, Chosen(expressions={"name": "sha2(name, 256)"})), ("where: id > 5", Chosen("id > 5"))],
    ids=["mask", "condition"],
)
def test_rows_that_were_staged_with_another_setting_do_not_land(lab: Lab, setting: str, chosen: Chosen) -> None:
    lab.mirror()
    lab.sql("UPDATE {t} SET name = 'secret person' WHERE id = 1")
    _stage(lab, key(2, 2))
    lab.configure(setting)
    with suppress(MirrorError):  # it may be refused
        publish_slice(lab.context, key(2, 2))
    assert "secret person" not in {value for values in landed_rows(lab.folder) for _, value in values}
    lab.mirror()
    require_equal(source_rows(lab.spark, Path(lab.uri), chosen=chosen), landed_rows(lab.folder))


def test_a_snapshot_that_a_host_with_a_fast_clock_staged_without_a_mask_does_not_land(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time_ns
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: right() + 3600 * 10**9)
        _stage(lab, key(0, 1))
    lab.configure(_MASK)
    lab.mirror()
    assert landing_files(lab.folder)
    assert row(id=1, name="n1", amount=0.5) not in landed_rows(lab.folder)


def test_feed_shows_changed_rows_where_columns_are_computed(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = Lab(spark, tmp_path)
    computed = {
        "label": {"sql": "upper(name)", "type": "string"},
        "amount": {"sql": "cast(amount as int)", "type": "int"},
    }
    lab.configure(f"changes: files\n    columns: {json.dumps(computed)}")
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING, amount DOUBLE) USING delta",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
        "UPDATE {t} SET name = 'q' WHERE id = 1",
    )
    assert main(["feed", "shop.orders", "--config", str(lab.config_file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {shown_row["id"] for shown_row in shown} == {1}
    assert "q" in {shown_row["name"] for shown_row in shown}
