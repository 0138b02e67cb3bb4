"""The text of mirror.yaml: whatever names folders and columns have, what is read back is what was meant."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import StorePath
from mirror_assets.features.init.with_spark.draft import Statement, TableEntry, config_text, flow
from mirror_assets.features.init.with_spark.keys import KeyProposal, Proof
from mirror_assets.features.init.with_spark.survey import Lake, Unreadable, name_tables
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.landing.names import TableName

_FILE = Path("/project/mirror.yaml")

_SQL = Path("/project/mirror.sql")
_STORE = StoreConfig(root="s3://acme-lake", region="eu-central-1", credential="environment")
_LAKE = Lake("s3://acme-lake", {"lake": _STORE}, ())
_ORDERS = TableEntry(
    TableName("sales", "orders"),
    StorePath("lake", "sales/orders"),
    Changes.FEED,
    KeyProposal(("order_id",), Proof.PROVEN, "3 rows, 0 NULLs, 3 distinct at version 1"),
    notes=("Version 1, 3 rows, 1 file; the change data feed is on.",),
)

_ODD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_TRICKY = ("yes", "null", "1e3", "- x", "a: b", "#", "'", '"', "{", "0x1F", "2026-01-01", "~", "&a", "*b", "!c", "%d")
_NAME = (st.sampled_from(_TRICKY) | _ODD).filter(
    lambda text: "${" not in text and "/" not in text and text not in (".", "..")
)


def _read(text: str) -> Config:
    return parse_config(text.encode(), _FILE, {})


def test_a_table_says_why_it_is_mirrored_like_this() -> None:
    text = config_text(_LAKE, [_ORDERS], [Unreadable("broken", "it has no commits")], _FILE, _SQL)
    assert text == (
        "# Written by `mirror-assets init`. Paths are relative to this file.\n"
        "landing_zone: {path: ./landing}\n"
        "# For Fabric, instead: landing_zone: {onelake: {url: <the landing zone's URL, copied from the portal>}}\n"
        "mirror: {path: ./mirror}\n"
        "\n"
        "stores:\n"
        "  lake: {root: 's3://acme-lake', credential: environment, region: eu-central-1}\n"
        "\n"
        "tables:\n"
        "  # Version 1, 3 rows, 1 file; the change data feed is on.\n"
        "  # order_id: proven: 3 rows, 0 NULLs, 3 distinct at version 1\n"
        "  sales.orders:\n"
        "    source: {store: lake, path: sales/orders}\n"
        "    keys: [order_id]\n"
        "    changes: feed\n"
        "\n"
        "# Not mirrored, because they can't be read:\n"
        "# - broken: it has no commits\n"
    )
    table = _read(text).table("sales.orders")
    assert (table.source, table.keys, table.changes) == ("s3://acme-lake/sales/orders", ("order_id",), Changes.FEED)


_STATEMENT = Statement("ALTER TABLE x", "it is off")


@pytest.mark.parametrize(
    ("waiting", "step"),
    [
        (replace(_ORDERS, statements=(_STATEMENT,)), "Run its statement in mirror.sql."),
        (
            replace(_ORDERS, statements=(_STATEMENT,), feed=True, keys=None, changes=Changes.ROW_TRACKING),
            "If you know its key, set `keys` and `changes: feed`. Otherwise, run its statement in mirror.sql.",
        ),
        (_ORDERS, "Correct that."),
    ],
)
def test_a_table_that_waits_is_a_comment_with_the_next_step(waiting: TableEntry, step: str) -> None:
    waiting = replace(waiting, name=TableName("sales", "lines"), missing="it is off")
    text = config_text(_LAKE, [_ORDERS, waiting], [], _FILE, _SQL)
    assert list(_read(text).tables) == ["sales.orders"]
    comments = " ".join(line.removeprefix("  # ") for line in text.splitlines())
    assert f"Not mirrored yet: it is off. {step} Then remove the # at the beginning of each line:" in comments
    uncommented = _read(re.sub("(?m)^#(?=  )", "", text))
    assert list(uncommented.tables) == ["sales.orders", "sales.lines"]


def test_a_folder_below_the_file_is_relative_to_it() -> None:
    for root, written in (("/project/my lake", "./my lake"), ("/elsewhere/lake", "/elsewhere/lake")):
        lake = Lake(root, {"lake": StoreConfig(root=root)}, ())
        text = config_text(lake, [_ORDERS], [], _FILE, _SQL)
        assert f"lake: {{root: {written}}}" in text
        assert _read(text).table("sales.orders").source == f"{root}/sales/orders"


@given(st.lists(st.lists(_NAME, min_size=1, max_size=3), min_size=1, max_size=4), st.lists(_NAME, max_size=4), _ODD)
def test_what_is_read_back_is_what_was_meant(paths: list[list[str]], columns: list[str], note: str) -> None:
    distinct = tuple({column.lower(): column for column in columns}.values())
    keys = KeyProposal(distinct or ("id",), Proof.PROVEN, note)
    sources = [StorePath("lake", "/".join(path)) for path in paths]
    entries = [
        TableEntry(name, source, Changes.FEED, keys, keys.columns, notes=(note,))
        for name, source in zip(name_tables(paths), sources, strict=True)
    ]
    config = _read(config_text(_LAKE, entries, [Unreadable(note, note)], _FILE, _SQL))
    assert list(config.tables) == [str(entry.name) for entry in entries]
    assert [table.source for table in config.tables.values()] == sources
    assert {(table.keys, table.columns) for table in config.tables.values()} == {(keys.columns, keys.columns)}


@given(_ODD)
def test_a_value_is_one_line(text: str) -> None:
    assert len(flow([text]).splitlines()) == 1
