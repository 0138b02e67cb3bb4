"""`init --no-spark`: what logs alone tell, what it writes, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.cli import main
from mirror_assets.config.load import load_config
from mirror_assets.features.init.with_spark.draft import make_draft
from mirror_assets.features.init.with_spark.survey import open_lake
from mirror_assets_tests.features.init.lake import BY_DELTA_RS, FEED, UNREADABLE, make_by_delta_rs
from mirror_assets_tests.source.s3_server import s3_server


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project") / "lake"
    make_by_delta_rs(root)
    return root


def _init(lake: Path | str, out: Path, *options: str) -> int:
    return main(["init", str(lake), "--no-spark", "--out", str(out), *options])


def test_both_files_are_written_and_the_first_can_be_loaded(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "mirror.yaml"
    assert _init(lake, out) == 0
    tables = load_config(out).all_tables()
    ready = {one.name for one in BY_DELTA_RS.values() if not one.waits}
    # The name of its key doesn't suggest one.
    assert {str(table.name) for table in tables} == ready - {"crm.customers"}
    text, sql = out.read_text(), out.with_suffix(".sql").read_text()
    assert "# order_id: not proven: by name and statistics" in text
    assert "# If you know its key, set `keys` and `changes: feed`." in text, "crm.customers has a feed and no key"
    advised = (
        f"-- Advised: ALTER TABLE delta.`{lake}/stock/items` SET TBLPROPERTIES (delta.enableChangeDataFeed = true);"
    )
    assert advised in sql
    assert "`changes: files` reads every file that a commit rewrites" in sql
    comments = " ".join(sql.replace("\n-- ", " ").split())
    assert "upgrades the table's protocol, which disabling row tracking doesn't undo" in comments
    assert "spark.databricks.delta.properties.defaults.enableChangeDataFeed = true" in comments
    assert max(map(len, sql.splitlines())) < 200
    assert all(f"# - {path}: " in text for path in UNREADABLE)
    shown = capsys.readouterr()
    assert "sales.orders_2" in shown.out
    assert "10 tables below" in shown.err
    assert f"mirror-assets run --config {out}" in shown.err


def test_json_has_a_record_of_every_table(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _init(lake, tmp_path / "m.yaml", "--json") == 0
    records = {record["path"]: record for record in json.loads(capsys.readouterr().out)}
    assert set(records) == {*BY_DELTA_RS, *UNREADABLE}
    assert records["sales/orders"] | {"keys": ["order_id"], "feed": True, "rows": 60} == records["sales/orders"]
    assert (records["stock/items"]["changes"], records["stock/items"]["missing"]) == ("files", None)
    assert "no commits" in records["hollow"]["missing"]


@pytest.mark.parametrize("there", ["m.yaml", "m.sql"])
def test_nothing_is_overwritten_unless_forced(
    lake: Path, tmp_path: Path, there: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / there).write_text("mine")
    assert _init(lake, tmp_path / "m.yaml") == 2
    assert f"{there} exists" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [there]
    assert _init(lake, tmp_path / "m.yaml", "--force") == 0
    assert "mine" not in (tmp_path / there).read_text()


def test_the_lake_may_be_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_deltalake("orders", pa.table({"id": [1, 2]}), configuration=FEED)
    write_deltalake("mirror/shop/orders", pa.table({"id": [1, 2]}), configuration=FEED)
    assert main(["init", ".", "--no-spark"]) == 0
    assert [table.source for table in load_config(tmp_path / "mirror.yaml").all_tables()] == [str(tmp_path / "orders")]


def test_a_lake_in_a_folder_that_the_file_writes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_deltalake(tmp_path / "mirror/shop/orders", pa.table({"id": [1, 2]}), configuration=FEED)
    assert _init(tmp_path / "mirror", tmp_path / "m.yaml") == 2
    assert "overlaps with mirror.path" in capsys.readouterr().err
    assert not (tmp_path / "m.yaml").exists()


def test_a_lake_without_a_table_that_can_be_mirrored_fails_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_deltalake(tmp_path / "lake/orders", pa.table({"name": ["same", "same"]}))
    assert _init(tmp_path / "lake", tmp_path / "m.yaml") == 1
    assert "read" in capsys.readouterr().err
    assert "tables: {}" in (tmp_path / "m.yaml").read_text()


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("nowhere", (), "No such file or directory"),
        ("plain", (), "has no Delta tables, down to 3 folders below it"),
        ("sales/orders@v2", (), "leave out `@v2` of the address"),
        ("sales/orders", (), "it is a table itself. Next: name the folder that contains it"),
        ("s3://acme/x", ("--credential", "guess"), "has no credential 'guess'"),
        ("s3://key:hunter2@acme/x", (), "credentials in a URI"),
        ("ftp://acme/x", (), "a scheme that is not known"),
    ],
)
def test_an_unfit_lake_is_refused(
    lake: Path, tmp_path: Path, place: str, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = place if "://" in place else str(lake / place)
    assert _init(where, tmp_path / "m.yaml", *options) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "hunter2" not in said
    assert not (tmp_path / "m.yaml").exists()


def test_names_that_the_file_can_not_hold_keep_only_their_table_out(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for path in ("fine", "a${b}", "a%41"):
        write_deltalake(lake / "x", pa.table({"id": [1]}), configuration=FEED, mode="overwrite")
        (lake / "x").rename(lake / path)
    assert _init(lake, tmp_path / "m.yaml") == 0
    assert list(load_config(tmp_path / "m.yaml").tables) == ["lake.fine"]
    text = (tmp_path / "m.yaml").read_text()
    assert "# - a${b}: a${b} can't be named" in text
    assert "# - a%41: " in text


def test_a_table_that_forgets_commits_soon_is_advised_to_keep_them(tmp_path: Path) -> None:
    short = {"delta.logRetentionDuration": "interval 1 day", "delta.deletedFileRetentionDuration": "interval 1 day"}
    write_deltalake(tmp_path / "lake/orders", pa.table({"id": [1, 2]}), configuration=FEED | short)
    assert _init(tmp_path / "lake", tmp_path / "m.yaml") == 0
    sql = (tmp_path / "m.sql").read_text()
    assert "-- Advised: ALTER TABLE" in sql
    assert "delta.deletedFileRetentionDuration = 'interval 7 days'" in sql


def test_declared_keys_go_before_all_others(lake: Path, tmp_path: Path) -> None:
    found = open_lake(str(lake), {}, 3)
    declared = tuple(replace(table, declared_keys=("customer_id",)) for table in found.tables)
    draft = make_draft(replace(found, tables=declared), tmp_path / "m.yaml", tmp_path / "m.sql", None)
    entry = next(entry for entry in draft.entries if str(entry.name) == "sales.orders")
    assert entry.keys is not None
    assert (entry.keys.columns, entry.keys.proof.value) == (("customer_id",), "declared")


def test_a_store_is_written_with_its_settings_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKE_AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("LAKE_AWS_SECRET_ACCESS_KEY", "hunter2")
    with s3_server(tmp_path) as server:
        server.put("acme")
        write_deltalake(
            "s3://acme/sales/orders",
            pa.table({"order_id": [1, 2]}),
            configuration=FEED,
            storage_options={**server.options, "aws_conditional_put": "etag"},
        )
        place = ("--region", "us-east-1", "--endpoint", server.endpoint)
        identity = ("--credential", "environment", "--env-prefix", "LAKE_")
        assert _init("s3a://acme/sales/", tmp_path / "m.yaml", *place, *identity) == 0
    config = load_config(tmp_path / "m.yaml")
    table = config.table("sales.orders")
    assert (table.source, table.keys) == ("s3://acme/sales/orders", ("order_id",))
    store = config.stores["lake"]
    assert (store.root, store.region, store.endpoint, store.env_prefix) == (
        "s3://acme/sales",
        "us-east-1",
        server.endpoint,
        "LAKE_",
    )
    shown = capsys.readouterr()
    written = [(tmp_path / name).read_text() for name in ("m.yaml", "m.sql")]
    assert not any("hunter2" in text for text in (*written, shown.out, shown.err))
