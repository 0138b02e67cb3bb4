"""Settings whose variables are not set, for commands that show what can be read without."""

from __future__ import annotations

import pytest

from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets_tests.config.reading import FILE
from mirror_assets_tests.errors import raises_row

_LANDING = "landing_zone: {path: ./landing}\n"
_TABLES = "tables: {t: {source: ./t, keys: [id]}}\n"


def _read(text: str) -> Config:
    return parse_config(text.encode(), FILE, {}, is_partial=True)


@pytest.mark.parametrize(
    "setting",
    [
        "alerts: {dagster_url: '${X}'}",
        "metrics: {otlp: {endpoint: '${X}'}}",
        "stores: {lake: {root: '${X}'}}",
        "stores: {lake: {root: 's3://lake', endpoint: '${X}'}}",
        "catalogs: {main: {type: unity, url: '${X}', token_variable: TOKEN}}",
    ],
)
def test_what_no_table_needs_is_left_out(setting: str) -> None:
    config = _read(f"{_LANDING}{setting}\n{_TABLES}")
    assert [str(name) for name in config.names] == ["t"]
    assert config.zone_error is None


@pytest.mark.parametrize("zone", ["{path: '${X}'}", "{onelake: {url: '${X}', credential: default}}"])
def test_a_landing_zone_has_the_error_that_names_its_variable(zone: str) -> None:
    error = _read(f"landing_zone: {zone}\nmirror: {{fabric: {{}}}}\n{_TABLES}").zone_error
    assert error is not None
    assert error.what.startswith("landing_zone.")
    assert "the environment variable X is not set" in error.what


@pytest.mark.parametrize(
    "text",
    [
        f"{_LANDING}tables: {{t: {{source: '${{X}}/t', keys: [id]}}}}\n",
        f"{_LANDING}defaults: {{on_break: '${{X}}'}}\n{_TABLES}",
        f"{_LANDING}stores: {{lake: {{root: '${{X}}'}}}}\n{_TABLES.replace('./t', '{store: lake, path: t}')}",
        f"landing_zone: {{path: '${{X}}', paths: y}}\n{_TABLES}alert: 1\n",
    ],
)
def test_what_a_table_needs_and_other_mistakes_remain(text: str) -> None:
    with raises_row(MISTAKES):
        _read(text)
