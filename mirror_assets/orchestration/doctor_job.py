"""The job `doctor`: asks the landing zone and the sources whether mirroring can work."""

from collections.abc import Iterable
from itertools import chain

import dagster as dg
from pydantic import Field

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import fixed_config, project, resource_keys, zone_of
from mirror_assets.orchestration.runs import failing
from mirror_assets.pipeline.doctor.answers import DoctorAnswer, DoctorVerdict
from mirror_assets.pipeline.doctor.examination import examine_sources, examine_zone
from mirror_assets.pipeline.doctor.mirror_questions import examine_mirror

DOCTOR = "doctor"
ZONE_OP, SOURCES_OP = "examine_landing_zone", "examine_sources"


class DoctorConfig(dg.Config):
    """The tables to examine (empty: all), whether with Spark, and whether to check the keys of all rows."""

    tables: list[str] = Field(default_factory=list)
    spark: bool = True
    thorough: bool = False


def doctor_job(assets: MirrorAssets) -> dg.JobDefinition:
    """Return the job; without Spark, it starts no JVM."""

    @dg.op(
        name=assets.full_name(ZONE_OP),
        description="Probe the landing zone, in a scratch folder, for what publishing needs.",
        out=assets.out,
        required_resource_keys=resource_keys(assets, with_spark=False),
    )
    def zone_op(context: dg.OpExecutionContext) -> list[DoctorAnswer]:
        with failing():
            return _logged(context, examine_zone(zone_of(assets, context.resources).open()))

    @dg.op(
        name=assets.full_name(SOURCES_OP),
        description="Ask each source, through both readers, whether it can be mirrored.",
        out=assets.out,
        required_resource_keys=resource_keys(assets),
    )
    def sources_op(context: dg.OpExecutionContext, config: DoctorConfig) -> list[DoctorAnswer]:
        with failing():
            composed = project(assets, context.resources, with_spark=config.spark, lands=False)
            tables = composed.tables(config.tables)
            found = with_found_tables(assets.config, When.NEVER)  # the definitions may be older than the newest scan
            of_mirror = examine_mirror(found, composed.store, tables)
            of_sources = examine_sources(tables, with_spark=config.spark, thorough=config.thorough)
            return _logged(context, chain(of_mirror, of_sources))

    @dg.op(name=assets.full_name("all_well"), description="Fail the run when an answer is no.")
    def all_well(of_zone: list[DoctorAnswer], of_sources: list[DoctorAnswer]) -> None:
        answers = (*of_zone, *of_sources)
        wrong = {f"{one.subject}: {one.question}": one.text for one in answers if one.verdict is DoctorVerdict.NO}
        if wrong:
            first = next(f"{asked} {text}" for asked, text in wrong.items())
            what = f"{len(wrong)} of {len(answers)} answers are no: {first}"
            raise dg.Failure(what, metadata=wrong, allow_retries=False)

    @dg.job(
        name=assets.full_name(DOCTOR),
        description="Ask landing zone and sources whether mirroring can work.",
        **fixed_config(assets),
    )
    def doctor() -> None:
        all_well(zone_op(), sources_op())

    return doctor


def _logged(context: dg.OpExecutionContext, answers: Iterable[DoctorAnswer]) -> list[DoctorAnswer]:
    """Log each answer when it arrives; return all."""
    found = list[DoctorAnswer]()
    for one in answers:
        found.append(one)
        log = context.log.info if one.verdict in (DoctorVerdict.OK, DoctorVerdict.NOT_ASKED) else context.log.warning
        log(f"{one.verdict.value}: {one.subject}: {one.question} {one.text}")
    return found
