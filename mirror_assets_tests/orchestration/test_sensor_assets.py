"""Dagster's page of an asset names the sensor that drives it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster._core.remote_representation.external import RemoteRepository
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.remote_representation.handle import RepositoryHandle

from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.asset_names import MIRROR_ALL, AssetKind, asset_key
from mirror_assets.orchestration.jobs import REPLICATE

_SETTINGS = """\
landing_zone: {path: ./landing}
mirror: {path: ./mirror}
tables:
  sales.orders: {source: ./lake/orders, keys: [id]}
  lines: {source: ./lake/lines, keys: [id]}
"""


@pytest.mark.parametrize(
    ("kind", "sensor", "job"),
    [
        (AssetKind.SOURCE, "mirror", MIRROR_ALL),
        (AssetKind.CHANGES, "mirror", MIRROR_ALL),
        (AssetKind.LANDING, "mirror", MIRROR_ALL),
        (AssetKind.MIRROR, "replicator", REPLICATE),
    ],
)
def test_an_asset_page_lists_the_sensor_that_drives_it(tmp_path: Path, kind: AssetKind, sensor: str, job: str) -> None:
    (tmp_path / "mirror.yaml").write_text(_SETTINGS)
    config = load_config(tmp_path / "mirror.yaml")
    snap = RepositorySnap.from_def(build_definitions(config).get_repository_def())
    seen = RemoteRepository(snap, RepositoryHandle.for_test(), auto_materialize_use_sensors=True)
    for name in config.names:
        targets = {found.name: found.get_targets() for found in seen.get_sensors_targeting(asset_key(kind, name))}
        assert set(targets) == {"mirror", "replicator"}, "a sensor targets the groups of the tables"
        assert [target.job_name for target in targets[sensor]] == [job], "it still starts that job"


def test_the_query_of_a_sensor_is_short_with_many_tables(tmp_path: Path) -> None:
    tables = "".join(f"  sales.t{number}: {{source: ./lake/t{number}, keys: [id]}}\n" for number in range(100))
    (tmp_path / "mirror.yaml").write_text(_SETTINGS + tables)
    snap = RepositorySnap.from_def(build_definitions(load_config(tmp_path / "mirror.yaml")).get_repository_def())
    for sensor in snap.sensors:
        assert len(str(sensor.asset_selection)) < 200, sensor.name
