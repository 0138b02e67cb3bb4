"""The sensor `replicator`: runs the local stand-in. What Fabric has applied is evaluated by the job `checks`."""

import dagster as dg

from mirror_assets.composition import stand_in
from mirror_assets.orchestration.jobs import REPLICATE
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resource_keys, zone_of
from mirror_assets.orchestration.runs import BUSY, Location
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.orchestration.sensor_assets import AssetJobSensor
from mirror_assets.orchestration.tick_errors import coded_tick

SENSOR = "replicator"
_REPLICATE_SECONDS = 20


def replicator_sensor(assets: MirrorAssets) -> dg.SensorDefinition:
    """Return the sensor that requests a run of the stand-in when a landing file waits, one run at a time."""
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
    made.groups = assets.groups
    return made
