"""Sensors that Dagster shows on the pages of the assets which their runs materialize.

A page lists a sensor if the sensor selects the asset, or starts a job of assets. The mirror's job has ops in place of
assets, since tables differ in their partitions. Dagster refuses a sensor that names both a job and assets, but the
snapshot of a sensor has a field for each; the code server fills both for a sensor whose job it has made from assets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import dagster as dg

from mirror_assets.config import Config
from mirror_assets.orchestration.asset_names import AssetKind, asset_key
from mirror_assets.orchestration.dagster_internals import UnresolvedAssetJobDefinition

SensorFunction: TypeAlias = Callable[..., dg.SensorResult | dg.RunRequest | dg.SkipReason]


class AssetJobSensor(dg.SensorDefinition):
    """A sensor that starts runs of a job of ops, shown on the pages of `assets`."""

    def __init__(
        self,
        function: SensorFunction,
        *,
        name: str,
        job_name: str,
        assets: Iterable[dg.AssetKey],
        minimum_interval_seconds: int,
        default_status: dg.DefaultSensorStatus,
        description: str,
    ) -> None:
        super().__init__(
            name=name,
            evaluation_fn=function,
            job_name=job_name,
            minimum_interval_seconds=minimum_interval_seconds,
            default_status=default_status,
            description=description,
        )
        self._assets = dg.AssetSelection.assets(*assets)

    @property
    def has_anonymous_job(self) -> bool:
        """Whether the snapshot takes its assets from `job`."""
        return True

    @property
    def job(self) -> UnresolvedAssetJobDefinition:
        """The assets, as a job that is never started."""
        return dg.define_asset_job(f"{self.name}_assets", self._assets)


def assets_of(config: Config, kinds: Sequence[AssetKind]) -> list[dg.AssetKey]:
    """Return the assets of these kinds of all tables."""
    return [asset_key(kind, name) for name in config.names for kind in kinds]
