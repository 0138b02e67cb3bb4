"""The sensor `replicator`: runs the local stand-in, or observes the tables in Fabric."""

from functools import partial

import dagster as dg

from mirror_assets.composition import stand_in
from mirror_assets.errors import RetryError
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.changed_mirrors import ChangedMirrors
from mirror_assets.orchestration.jobs import REPLICATE
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import mirror_of, resource_keys, zone_of
from mirror_assets.orchestration.run_records import BUSY
from mirror_assets.orchestration.run_tags import Location
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.orchestration.sensor_assets import AssetJobSensor
from mirror_assets.orchestration.tick_errors import coded_tick
from mirror_assets.pipeline.context import manifest_or_none

SENSOR = "replicator"
_REPLICATE_SECONDS = 20
_OBSERVE_SECONDS = 300


def replicator_sensor(assets: MirrorAssets) -> dg.SensorDefinition:
    """Return the sensor that runs the local stand-in, or observes the tables in Fabric.

    It requests a run of the stand-in when a landing file waits, one run at a time.
    """
    if assets.config.mirror.fabric is not None:
        return _fabric_sensor(assets)
    job = assets.full_name(REPLICATE)

    @coded_tick()
    def sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if context.instance.get_runs(
            dg.RunsFilter(job_name=job, statuses=BUSY, tags=Location.of(context).tags), limit=1
        ):
            return dg.SkipReason("it is polling")
        waits = stand_in(assets.config, zone_of(assets, context.resources).store()).has_work()
        return dg.RunRequest() if waits else dg.SkipReason("no landing file waits")

    made = AssetJobSensor(
        name=assets.full_name(SENSOR),
        evaluation_fn=sensor,
        job_name=job,
        required_resource_keys=resource_keys(assets, with_spark=False),
        minimum_interval_seconds=_REPLICATE_SECONDS,
        default_status=default_sensor_status(),
        description="Runs the local stand-in for Fabric's replicator.",
    )
    made.assets = assets.keys(AssetKind.MIRROR)
    return made


def _fabric_sensor(assets: MirrorAssets) -> dg.SensorDefinition:
    """Return the sensor that observes Fabric without a run; each tick lists every table folder.

    It records nothing while nothing changes: events that belong to no run stay in Dagster permanently.
    """
    changed = ChangedMirrors(assets)

    @dg.sensor(
        name=assets.full_name(SENSOR),
        asset_selection=assets.keys(AssetKind.MIRROR),
        required_resource_keys=resource_keys(assets, with_spark=False),
        minimum_interval_seconds=_OBSERVE_SECONDS,
        default_status=default_sensor_status(),
        description="Asks Fabric what it has applied; records what has changed.",
    )
    @coded_tick()
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        names, landing_zone = assets.config.names, zone_of(assets, context.resources)
        try:
            statuses = mirror_of(assets.config, landing_zone).status()
        except RetryError as error:
            return dg.SkipReason(str(error))
        ours = [status for status in statuses if status.name in names]
        context.log.info(f"Fabric mirrors {len(ours)} of {len(names)} tables")
        read_manifest = partial(manifest_or_none, landing_zone.open())
        return dg.SensorResult(asset_events=changed.events(context.instance, read_manifest, ours))

    return sensor
