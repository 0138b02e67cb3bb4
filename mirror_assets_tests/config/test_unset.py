"""Variables that are not set matter only to those who need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import load_config, read_config
from mirror_assets.config.model import Config
from mirror_assets_tests.errors import raises_row

_LANDING = "landing_zone: {path: ./landing}\n"
_TABLES = "tables: {t: {source: ./t, keys: [id]}}\n"
_TEXT = """\
landing_zone: {path: "${LANDING}"}
metrics: {prometheus: {port: "${PORT}"}}
stores:
  lake: {root: "s3://lake/", region: "${REGION}"}
  other: {root: "${OTHER}"}
  direct: {root: "abfss://silver@acme.dfs.core.windows.net/", credential: client_secret, env_prefix: "${PREFIX}"}
tables:
  sales.orders: {source: %s, keys: [id]}
"""


def _read(folder: Path, text: str) -> Config:
    (folder / "mirror.yaml").write_text(text)
    return load_config(folder / "mirror.yaml", is_partial=True)


def _file(folder: Path, source: str) -> Path:
    file = folder / "mirror.yaml"
    file.write_text(_TEXT % source)
    return file


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        ("/lake/orders", []),
        ("{store: lake, path: orders}", ["stores.lake.region"]),
        ("s3://lake/orders", ["stores.lake.region"]),
        ("{store: other, path: orders}", ["stores.other.root"]),
        ("abfss://silver@acme.dfs.core.windows.net/orders", ["stores.direct.env_prefix"]),
        ('"${FOLDER}/orders"', ["tables.sales.orders.source"]),
    ],
)
def test_a_source_needs_its_own_variables(source: str, needed: list[str], tmp_path: Path) -> None:
    unset = read_config(_file(tmp_path, source)).unset
    assert [problem.path for problem in unset.of_sources] == needed
    assert unset.zone_error is not None
    assert "LANDING" in str(unset.zone_error)
    if needed:
        with raises_row(MISTAKES, match=needed[0]):
            load_config(tmp_path / "mirror.yaml", is_partial=True)
    else:
        assert list(load_config(tmp_path / "mirror.yaml", is_partial=True).tables) == ["sales.orders"]
    with raises_row(MISTAKES, match="PORT is not set"):
        load_config(tmp_path / "mirror.yaml")


def test_a_variable_for_which_no_value_fits_is_reported(tmp_path: Path) -> None:
    file = _file(tmp_path, '/lake/orders, changes: "${CHANGES}"')
    with raises_row(MISTAKES, match="CHANGES is not set"):
        read_config(file)


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
def test_what_no_table_needs_may_be_unset(setting: str, tmp_path: Path) -> None:
    config = _read(tmp_path, f"{_LANDING}{setting}\n{_TABLES}")
    assert [str(name) for name in config.names] == ["t"]
    assert config.unset.zone_error is None


@pytest.mark.parametrize(
    "zone", ["{path: '${X}'}", "{onelake: {url: '${X}', credential: default}}\nmirror: {fabric: {}}"]
)
def test_a_landing_zone_has_the_error_that_names_its_variable(zone: str, tmp_path: Path) -> None:
    error = _read(tmp_path, f"landing_zone: {zone}\n{_TABLES}").unset.zone_error
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
def test_what_a_table_needs_and_other_mistakes_remain(text: str, tmp_path: Path) -> None:
    with raises_row(MISTAKES):
        _read(tmp_path, text)
