"""Scheduled jobs whose runs don't end well any more: they are problems that `checks` reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone

import dagster as dg

from mirror_assets.landing.problems import ProblemKey, Severity
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.runs import EVALUATED_ALL, EVALUATED_SOME, EVALUATED_TAG, mirror_tags
from mirror_assets.pipeline.evaluation import FailedCheck

OVERDUE = "overdue"


def overdue_results(
    instance: dg.DagsterInstance, assets: MirrorAssets, hours: Mapping[str, int], now: float
) -> Iterator[tuple[ProblemKey, FailedCheck | None]]:
    """Yield for each of these jobs whether a run has ended well within twice its interval in `hours`.

    A run of checks that found a problem has ended well. A job that its schedule has never started is not overdue: the
    schedule is off. `now` is in seconds since 1970.
    """
    mirror = mirror_tags(assets.config)
    for base, interval in hours.items():
        job = assets.full_name(base)
        scheduled = dg.RunsFilter(job_name=job, tags=mirror)
        first = instance.get_run_records(scheduled, limit=1, ascending=True)
        if not first:
            continue
        evaluated = {**mirror, EVALUATED_TAG: [EVALUATED_ALL, EVALUATED_SOME]}
        succeeded = dg.RunsFilter(job_name=job, tags=mirror, statuses=[dg.DagsterRunStatus.SUCCESS])
        ended = [
            *instance.get_run_records(succeeded, limit=1),
            *instance.get_run_records(dg.RunsFilter(job_name=job, tags=evaluated), limit=1),
        ]
        since = max((one.end_time or 0.0 for one in ended), default=first[0].create_timestamp.timestamp())
        key = ProblemKey(job, "", OVERDUE)
        if now - since <= 2 * interval * 3600:
            yield key, None
            continue
        ended_at = f"{datetime.fromtimestamp(since, timezone.utc):%Y-%m-%d %H:%M} UTC"
        failed = FailedCheck(
            "is overdue",
            f"No run of the job {job} has ended well since {ended_at}; one is due every {interval} hours.",
            Severity.WARN,
            next_step=f"open the newest run of {job} in Dagster and read its error; check that its schedule is on.",
            page=f"jobs/{job}",
        )
        yield key, failed
