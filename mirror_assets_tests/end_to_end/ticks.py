"""A code location as the daemon sees it: ticks of the sensor, and the runs that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from mirror_assets.definitions import build_definitions
from mirror_assets.landing.names import SliceKey
from mirror_assets.orchestration.dagster_internals import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)
from mirror_assets.orchestration.jobs import REBUILD, REBUILD_OP
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets, partitions_name
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.sensors import MIRROR_SENSOR
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.orchestration.mirrors import evaluate


def slices(first: SliceKey, last: SliceKey) -> dict[str, str]:
    """The tags with which Dagster names a range of partitions."""
    return {ASSET_PARTITION_RANGE_START_TAG: str(first), ASSET_PARTITION_RANGE_END_TAG: str(last)}


def materialize(
    definitions: dg.Definitions, instance: dg.DagsterInstance, tags: Mapping[str, str]
) -> dg.ExecuteInProcessResult:
    """Materialize the table's changes and landing, as from the UI; the tags name the partitions."""
    assets = [asset_key(kind, TABLE) for kind in (AssetKind.CHANGES, AssetKind.LANDING)]
    job = definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(instance=instance, tags=dict(tags), asset_selection=assets, raise_on_error=False)


@dataclass(frozen=True)
class Location:
    """Definitions that were loaded once, as a code server does, and the instance they run in."""

    definitions: dg.Definitions
    resources: dict[str, object]
    instance: dg.DagsterInstance

    @classmethod
    def of(cls, lab: Lab, instance: dg.DagsterInstance) -> Location:
        return cls(build_definitions(lab.config), dict(resources(MirrorAssets(lab.config))), instance)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        context = dg.build_sensor_context(
            instance=self.instance, definitions=self.definitions, resources=self.resources
        )
        result = evaluate(self.definitions.resolve_sensor_def(MIRROR_SENSOR), context)
        assert isinstance(result, dg.SensorResult | dg.SkipReason)
        return result

    def skipped(self) -> str:
        """Why a tick asks for nothing; fails when it does."""
        result = self.tick()
        assert isinstance(result, dg.SkipReason), result
        return result.skip_message or ""

    def requested(self) -> dg.RunRequest:
        """What a tick asks for; fails when it does not."""
        result = self.tick()
        assert isinstance(result, dg.SensorResult), result
        (request,) = result.run_requests or []
        return request

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        return self.job(MIRROR_ALL, request.run_config, request.tags)

    def run_slices(self, *keys: SliceKey) -> dg.ExecuteInProcessResult:
        """Run these slices, a range, as a person does in the UI; they are registered first."""
        self.instance.add_dynamic_partitions(
            partitions_name(asset_key(AssetKind.LANDING, TABLE)), [str(key) for key in keys]
        )
        return materialize(self.definitions, self.instance, slices(keys[0], keys[-1]))

    def job(
        self,
        name: str,
        run_config: object = None,
        tags: Mapping[str, str] | None = None,
        partition: str | None = None,
    ) -> dg.ExecuteInProcessResult:
        """A run of a job, as somebody starts it by hand when there are no tags."""
        job = self.definitions.resolve_job_def(name)
        return job.execute_in_process(
            run_config=run_config or None,  # type: ignore[arg-type]  # a mapping or a RunConfig
            instance=self.instance,
            tags=dict(tags or {}),
            partition_key=partition,
            raise_on_error=False,
        )

    def rebuild(self) -> dg.ExecuteInProcessResult:
        """The job `rebuild`, as from the UI."""
        return self.job(REBUILD, {"ops": {REBUILD_OP: {"config": {"confirm": str(TABLE)}}}}, partition=str(TABLE))

    def mirror_all(self) -> dg.ExecuteInProcessResult:
        """The job `mirror_all`, as from the UI."""
        return self.job(MIRROR_ALL)
