"""A mirror that begins without a snapshot, ranges of a run, and the feed on the command line: one table for all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab


def _main(lab: Lab, *arguments: str) -> int:
    return main([*arguments, "--config", str(lab.config_file)])


def _mirror_ids(lab: Lab) -> list[int]:
    rows = lab.spark.read.format("delta").load(str(lab.root / "mirror" / "shop" / "orders")).collect()
    return sorted(row["id"] for row in rows)


def test_only_what_comes_after_the_start_lands_and_is_compared(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.configure("start: latest")
    assert _main(lab, "run") == 0
    assert lab.files == ["00000000000000000001.parquet"]
    assert lab.is_equal
    lab.change()  # versions 2 to 5
    assert _main(lab, "run", "--from", "4") == 2, "a gap is a wrong command line"
    assert _main(lab, "run", "--to", "9") == 2
    assert "is after its newest commit, version 5" in capsys.readouterr().err
    assert _main(lab, "run", "--from", "1", "--to", "3") == 0
    manifest = lab.context.manifest()
    assert manifest is not None
    assert manifest.covered == 3
    assert _main(lab, "run", "--to", "9", "--clip") == 0
    result = lab.compare()
    assert _mirror_ids(lab) == [1, 2, 77, 500]
    assert (result.state, result.since, result.source_rows, result.mirror_rows) == (ReconcileState.EQUAL, 2, 4, 4)
    lab.spark.sql(f"UPDATE delta.`{lab.root / 'mirror' / 'shop' / 'orders'}` SET amount = -1 WHERE id = 2")
    different = lab.compare()
    assert (different.state, different.columns) == (ReconcileState.DIFFERENT, ("amount",))
    _feed(lab, capsys)


def _feed(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert _main(lab, "feed", "shop.orders", "--json") == 0
    newest = json.loads(capsys.readouterr().out)
    assert sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in newest) == [
        (5, "update_postimage", 500),
        (5, "update_preimage", 5),
    ]
    assert _main(lab, "feed", "shop.orders", "--from", "2", "--to", "4", "--json", "--limit", "7") == 0
    told = capsys.readouterr()
    versions = [row["_commit_version"] for row in json.loads(told.out)]
    assert (versions, len(versions)) == (sorted(versions), 7)
    assert "there are more rows than 7" in told.err
    assert _main(lab, "feed", "shop.orders", "--from", "9") == 2
    assert _main(lab, "feed", "shop.orders", "--from", "9", "--clip") == 0


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
    assert _main(lab, "feed", "shop.orders", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {shown_row["id"] for shown_row in shown} == {1}
    assert "q" in {shown_row["name"] for shown_row in shown}
