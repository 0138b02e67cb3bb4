"""A store that gives no answer is asked a few times, not once for each table."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.load import parse_config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.pipeline import many_tables
from mirror_assets.pipeline.many_tables import SilentStores

_SOURCES = {"t0": "s3://lake/t0", "t1": "s3://lake/t1", "other": "s3://other/t", "local": "./t"}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, TableSettings]:
    text = "landing_zone: {path: ./landing}\ntables:\n"
    text += "".join(f"  {name}: {{source: '{source}', keys: [id]}}\n" for name, source in _SOURCES.items())
    config = parse_config(text.encode(), tmp_path / "mirror.yaml", {})
    return {name: config.table(name) for name in _SOURCES}


def _fails(silent: SilentStores, table: TableSettings, code: ErrorCode, times: int) -> None:
    for _ in range(times):
        with pytest.raises(RetryError, match=r"^no answer"), silent.asking(table, source=True):
            raise RetryError("no answer.", "wait.", code=code)


def test_a_source_that_is_silent_is_not_asked_for_other_tables(tables: dict[str, TableSettings]) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.SOURCE_UNAVAILABLE, 5)
    with pytest.raises(RetryError, match=r"s3://lake did not respond to 5 requests.*no answer") as refused:
        silent.asking(tables["t1"], source=True).__enter__()
    assert refused.value.code is ErrorCode.SOURCE_UNAVAILABLE
    for name in ("other", "local"):
        with silent.asking(tables[name], source=True):
            pass
    with silent.asking(tables["t1"], source=False):
        pass  # a question that the landing zone alone answers


def test_a_landing_zone_that_is_silent_is_asked_for_no_table(tables: dict[str, TableSettings]) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.STORE_UNAVAILABLE, 5)
    with pytest.raises(RetryError, match="the landing zone did not respond to 5 requests"):
        silent.asking(tables["other"], source=False).__enter__()


def test_a_few_requests_may_be_lost_and_other_errors_do_not_count(tables: dict[str, TableSettings]) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.SOURCE_UNAVAILABLE, 4)
    _fails(silent, tables["t0"], ErrorCode.TABLE_BUSY, 20)
    with silent.asking(tables["t1"], source=True):
        pass


def test_it_is_asked_again_after_some_minutes(
    tables: dict[str, TableSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SilentStores()
    _fails(silent, tables["t0"], ErrorCode.SOURCE_UNAVAILABLE, 5)
    monkeypatch.setattr(many_tables, "_RECENT_SECONDS", 0.0)
    with silent.asking(tables["t1"], source=True):
        pass
