"""Variables that are not set matter only to those who need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import load_config, read_config
from mirror_assets_tests.errors import raises_row

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
