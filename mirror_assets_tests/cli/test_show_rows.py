"""What `mirror-assets feed` shows, and what it says of ranges that can't be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.smoke import smoke_first

_FEED, _TRACKING = "delta.enableChangeDataFeed", "delta.enableRowTracking"


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    lab = Lab(spark, tmp_path / "lab")
    lab.root.mkdir()
    lab.configure()
    return lab


def _feed(lab: Lab, *arguments: str) -> int:
    return main(["feed", "shop.orders", "--config", str(lab.config_file), *arguments])


def _shown(lab: Lab, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert _feed(lab, "--json", *arguments) == 0
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return rows


def _refused(lab: Lab, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert _feed(lab, *arguments) == 2
    return " ".join(capsys.readouterr().err.split())


def test_a_deleted_change_file_is_named_with_the_first_version_that_can_be_read(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.create()
    lab.sql("UPDATE {t} SET amount = 1 WHERE id = 1", "UPDATE {t} SET amount = 2 WHERE id = 2")
    before = set(Path(lab.uri, "_change_data").glob("*.parquet"))
    lab.sql("UPDATE {t} SET amount = 3 WHERE id = 3")
    (kept,) = set(Path(lab.uri, "_change_data").glob("*.parquet")) - before
    for file in before:
        file.unlink()
    told = _refused(lab, capsys, "--from", "1", "--to", "3")
    assert "choose commits from version 4 on (--from 4)" in told
    assert "interrupted" not in told
    assert all(f"_change_data/{file.name}" in told for file in before)
    assert "of version 2, " in told
    assert "of version 3" in told
    assert kept.name not in told
    assert len(_shown(lab, capsys, "--from", "4")) == 2
    kept.unlink()
    assert "no later commit can be read" in _refused(lab, capsys)


def test_a_range_is_shown_if_the_feed_was_on_then_whatever_the_newest_version_says(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.create()
    lab.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_FEED} = false)", "DELETE FROM {t} WHERE id = 1")
    assert len(_shown(lab, capsys, "--from", "0", "--to", "1")) == 10
    assert "the change data feed was off at version 2" in _refused(lab, capsys, "--from", "1", "--to", "2")
    assert "choose commits among versions 0 to 1." in _refused(lab, capsys, "--from", "0")
    assert "SET TBLPROPERTIES" in _refused(lab, capsys)


def test_a_range_over_a_rename_and_a_drop_is_shown_in_pieces_with_their_own_columns(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.create()
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN name TO label",
        "INSERT INTO {t} VALUES (20, 'twenty', 2)",
        "ALTER TABLE {t} DROP COLUMN amount",
        "INSERT INTO {t} VALUES (30, 'thirty')",
    )
    rows = _shown(lab, capsys, "--from", "0")
    columns = {(row["_commit_version"], *list(row)[3:]) for row in rows}
    assert columns == {(1, "id", "name", "amount"), (4, "id", "label", "amount"), (6, "id", "label")}
    assert len(rows) == 12
    assert len(_shown(lab, capsys, "--from", "0", "--limit", "11")) == 11
    assert _feed(lab, "--from", "4") == 0
    assert capsys.readouterr().out.count("Change feed") == 2


@pytest.mark.parametrize("changes", smoke_first(["files", "row_tracking"]))
def test_a_table_whose_versions_are_compared_is_shown_without_a_feed(
    lab: Lab, capsys: pytest.CaptureFixture[str], changes: str
) -> None:
    lab.configure(f"changes: {changes}")
    lab.sql(f"CREATE TABLE {{t}} (id INT, name STRING, amount DOUBLE) USING delta TBLPROPERTIES ({_TRACKING} = true)")
    lab.sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(4)",
        "UPDATE {t} SET amount = 7 WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
    )
    rows = _shown(lab, capsys, "--from", "0")
    assert sorted((row["_commit_version"], row["_change_type"], row["id"], row["amount"]) for row in rows[4:]) == [
        (2, "update_postimage", 1, 7.0),
        (3, "delete", 2, None),
    ]
    assert [(row["_commit_version"], row["_change_type"]) for row in rows[:4]] == [(1, "insert")] * 4
    assert all(row["_commit_timestamp"] for row in rows)
    lab.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_TRACKING} = false)")
    assert len(_shown(lab, capsys, "--from", "2", "--to", "3")) == 2
    if changes == "files":
        return
    assert "row tracking was off at version 4" in _refused(lab, capsys, "--from", "3", "--to", "4")


@pytest.mark.parametrize("changes", smoke_first(["files", "feed", "row_tracking"]))
def test_columns_and_values_are_the_sources_whatever_lands(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, changes: str
) -> None:
    monkeypatch.setenv("SALT", "planted-secret")
    lab.sql(
        "CREATE TABLE {t} (id INT, name STRING, amount DOUBLE, code VARCHAR(9)) USING delta "
        f"TBLPROPERTIES ({_TRACKING} = true, {_FEED} = true)",
        "INSERT INTO {t} VALUES (1, 'Ada', 1.5, 'a'), (2, 'Bo', 2.5, 'b')",
        "UPDATE {t} SET name = 'Eve' WHERE id = 1",
    )
    masks = "- label: {sql: upper(name), type: string}\n    - name: \"sha2(concat(name, '${SALT}'), 256)\""
    lab.configure(
        f"changes: {changes}\n    where: id > 1\n    columns:\n    - id: {{sql: string(id), type: string}}\n    {masks}"
    )
    rows = _shown(lab, capsys)
    row = next(row for row in rows if row["_change_type"] == "update_postimage")
    del row["_commit_timestamp"]
    assert row == {
        "_commit_version": 2,
        "_change_type": "update_postimage",
        "id": 1,
        "name": "Eve",
        "amount": 1.5,
        "code": "a",
    }
    assert "planted-secret" not in json.dumps(rows)


def test_a_computed_key_is_shown_beside_the_sources_columns(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.create()
    lab.sql("DELETE FROM {t} WHERE id = 1")
    lab.configure("changes: files\n    columns: {key: {sql: \"concat('k', id)\", type: string}}", keys="[key]")
    (row,) = _shown(lab, capsys)
    assert (row["key"], row["_change_type"]) == ("k1", "delete")
    assert list(row)[3:] == ["key", "id", "name", "amount"]


def test_preview_shows_masked_rows_of_a_table_without_a_feed(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.sql("CREATE TABLE {t} (id INT, name STRING) USING delta", "INSERT INTO {t} VALUES (1, 'Ada'), (2, 'Plato')")
    lab.configure('where: id > 1\n    columns: {name: "left(name, 1)"}')
    arguments = ["preview", "shop.orders", "--config", str(lab.config_file)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"id": 2, "name": "P"}]
    assert main(arguments) == 0
    assert "Plato" not in capsys.readouterr().out
    lab.configure('columns: {name: "rand()"}')
    assert main(arguments) == 2
    assert "mirror.yaml:10: tables.shop.orders.columns.name: its value would differ" in capsys.readouterr().err
