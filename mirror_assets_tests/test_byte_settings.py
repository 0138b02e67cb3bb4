"""The table of settings that decide bytes: refused with another value, accepted with the same one, documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.byte_settings import BYTE_SETTINGS, CONTEXT_SETTINGS, PINNED, require_fixed, setting_problem
from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import parse_config
from mirror_assets.errors import SettingError
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.pages import DOCS, codes, table

_BASE = "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [order_id]}}\n"


def _parse(settings: str) -> None:
    parse_config(f"{_BASE}spark:\n  settings:\n    {settings}\n".encode(), Path("mirror.yaml"), {"SAFE": "false"})


@pytest.mark.parametrize("value", ["false", "'false'", '"False "'])
def test_another_value_in_mirror_yaml_is_refused_with_line_setting_and_reason(value: str) -> None:
    with raises_row(MISTAKES) as refused:
        _parse(f"spark.sql.ansi.enabled: {value}")
    expected = (
        "mirror.yaml:5: spark.settings.spark.sql.ansi.enabled: it decides which rows land, and can only be 'true'"
    )
    assert expected in refused.value.what
    assert "`where` and `columns` mean the same" in refused.value.what


@pytest.mark.parametrize("value", ["true", "'TRUE'"])
def test_the_same_value_is_accepted(value: str) -> None:
    _parse(f"spark.sql.ansi.enabled: {value}")


def test_a_value_of_the_environment_is_checked_when_a_session_opens() -> None:
    _parse("spark.sql.ansi.enabled: ${SAFE}")
    with pytest.raises(SettingError, match=r"spark\.sql\.ansi\.enabled: it decides which rows land"):
        require_fixed({"spark.sql.ansi.enabled": "false"})


def test_a_setting_that_may_never_be_set_says_so() -> None:
    problem = setting_problem(CONTEXT_SETTINGS[1].name, "my.Filter")
    assert problem == f"it decides which rows land, and can't be set: {CONTEXT_SETTINGS[1].reason}"


def test_no_setting_is_in_the_table_twice() -> None:
    assert len(PINNED) == sum(len(group.values) for group in BYTE_SETTINGS)


def test_the_docs_have_the_table() -> None:
    rows = table(DOCS / "spark-versions.md", "Settings that decide bytes")
    told = {(name, codes(value)[0] if codes(value) else "") for names, value, _ in rows for name in codes(names)}
    never = {(setting.name, setting.value or "") for setting in CONTEXT_SETTINGS}
    assert told == set(PINNED.items()) | never
    reasons = {name: reason for names, _, reason in rows for name in codes(names)}
    expected = {name: group.reason for group in BYTE_SETTINGS for name in group.values}
    assert reasons == expected | {setting.name: setting.reason for setting in CONTEXT_SETTINGS}
