"""The settings of histories in mirror.yaml: what they are, and every mistake in them."""

# ruff: noqa: E501 - one mistake a line reads as a table

from __future__ import annotations

import pytest

from mirror_assets.features.history.history_settings import HistoryMode, HistorySettings, HistoryTable
from mirror_assets.features.history.with_dagster.opening import history_uri
from mirror_assets_tests.config.reading import mistake, mistakes, read

_TEXT = """\
landing_zone: {path: landing}
defaults: {keys: [id]}
tables:
  orders: {source: lake/orders}
  customers: {source: lake/customers}
"""
# Each mistake is added to this file, below its last line.
_BASE = """\
landing_zone:
  path: landing
tables:
  planes:
    source: lake/planes
    keys: [tailnum]
"""
_LINE = _BASE.count("\n") + 1
_STORE = """\
landing_zone: {path: ./landing}
stores:
  hot: {root: "abfss://h@acc.dfs.core.windows.net/", credential: managed_identity}
tables:
  orders: {source: ./orders, keys: [id]}
"""


def test_a_history_is_kept_where_a_table_or_the_defaults_say_so() -> None:
    tables = map(HistoryTable.of, read(_TEXT).all_tables())
    assert [table.history for table in tables] == [HistoryMode.OFF, HistoryMode.OFF]
    text = _TEXT.replace("[id]}", "[id], history: slices}").replace("lake/orders}", "lake/orders, history: false}")
    assert [HistoryTable.of(table).keeps_history for table in read(text).all_tables()] == [False, True]
    assert HistorySettings.of(read(text)).history.path == "/etc/history"
    assert HistorySettings.of(read(text + "history: {path: kept}\n")).history.path == "/etc/kept"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("history_start: latest", "history_start: expected 'snapshot', 'earliest', {version: N} or {timestamp: yyyy-MM-dd HH:mm:ss}, got 'latest'"),
        ("history: true", "history: expected false, 'slices' or 'stream', got true"),
        ("history: always", "history: expected 'false', 'slices' or 'stream', got 'always'"),
        ("history: ", "history: expected false, 'slices' or 'stream', got nothing"),
    ],
)  # fmt: skip
def test_mistakes_in_a_table(line: str, expected: str) -> None:
    assert mistakes(f"{_BASE}    {line}\n") == [f"{_LINE}: tables.planes.{expected}"]


def test_a_place_is_text() -> None:
    expected = f"{_LINE}: history.path: expected text (quotes make it text), got 4.2"
    assert mistakes(f"{_BASE}history: {{path: 4.2}}\n") == [expected]


def test_a_history_in_a_source_is_a_mistake_if_one_is_stored() -> None:
    text = _BASE.replace("lake/planes", "history/planes")
    assert read(text).names
    text += "    history: stream\n"
    assert "5: tables.planes.source: /etc/history/planes overlaps with history.path" in mistake(text)
    found = mistake(f"{text}history: {{path: landing/history}}\n")
    assert f"{_LINE + 1}: history.path: /etc/landing/history overlaps with landing_zone.path on line 2" in found


def test_a_history_may_be_in_a_store_but_not_on_s3() -> None:
    stored = read(_STORE + 'defaults: {history: slices}\nhistory: {path: "abfss://h@acc.dfs.core.windows.net/h/"}\n')
    assert history_uri(stored, stored.table("orders").name).startswith("abfss://h@acc.dfs.core.windows.net/h/")
    assert "abfss://h@acc.dfs.core.windows.net" in {store.root.uri for store in stored.lake_stores()}
    unused = read(_STORE + 'history: {path: "abfss://h@acc.dfs.core.windows.net/h/"}\n')
    assert unused.lake_stores() == (), "Spark doesn't have to reach a place that no table uses"
    found = mistake(_STORE + "history: {path: s3://acme/history}\n")
    assert found.startswith("6: history.path: on S3, Spark detects concurrent commits only within one driver")
