"""Reports an evaluation of checks: stores its problems, sends what is due, and names new errors.

The problems are in the landing zone. While it can't be read or written, that is the only problem; it is in a tag of the
newest run of `checks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial

import dagster as dg
import pydantic

from mirror_assets.config.discovered import FoundState
from mirror_assets.config.model import Config
from mirror_assets.errors import NEXT, ErrorCode, MirrorError, StopError
from mirror_assets.landing.problems import ProblemFile, ProblemKey, ProblemStore, Severity, StoredProblem
from mirror_assets.orchestration.asset_check import SKIPPED, Check
from mirror_assets.orchestration.check_runs import EvaluatedCheck
from mirror_assets.orchestration.dagster_internals import HIDDEN_TAG_PREFIX
from mirror_assets.orchestration.errors import NEW_PROBLEMS
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.runs import EVALUATED_ALL, EVALUATED_SOME, EVALUATED_TAG, mirror_tags
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.orchestration.units import count, joined
from mirror_assets.pipeline.evaluation import Evaluation, FailedCheck, newly_open
from mirror_assets.pipeline.project import Project

OUTAGE_TAG = f"{HIDDEN_TAG_PREFIX}mirror_outage"
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
_ZONE = ProblemKey("landing zone", "", "reachable")
# Codes of a table that was deleted, whose mount vanished, or whose grant was revoked.
_LOST = {
    code.value
    for code in (
        ErrorCode.SOURCE_NOT_DELTA,
        ErrorCode.SOURCE_UNREADABLE,
        ErrorCode.SOURCE_UNAVAILABLE,
        ErrorCode.CATALOG_REFUSED,
        ErrorCode.CATALOG_UNAVAILABLE,
    )
}
Results = Mapping[ProblemKey, FailedCheck | None]
OVERDUE = "overdue"


@dataclass
class RunTagMemory:
    """The problems in a tag of the newest run of a job that evaluated all; a run without problems has no tag.

    `tags` select the runs of this code location.
    """

    instance: dg.DagsterInstance
    run: dg.DagsterRun
    tags: Mapping[str, str]
    _known: ProblemFile | None = None
    _is_tagged: bool = False

    def change(self, change: Callable[[ProblemFile], ProblemFile]) -> tuple[ProblemFile, ProblemFile]:
        """Tag this run with the problems after the change; the first time, those of the newest run that has ended."""
        before = self.read()
        after = change(before)
        if after.problems or self._is_tagged:
            after = after.model_copy(update={"generation": before.generation + 1})
            self.instance.add_run_tags(self.run.run_id, {OUTAGE_TAG: after.model_dump_json()})
            self._known, self._is_tagged = after, True
        return before, after

    def read(self) -> ProblemFile:
        """Return the problems; those of the newest run are read once."""
        if self._known is not None:
            return self._known
        tags = {**self.tags, EVALUATED_TAG: EVALUATED_ALL}  # a run of some checks knows nothing of an outage
        filters = dg.RunsFilter(job_name=self.run.job_name, tags=tags, statuses=_ENDED)
        newest = self.instance.get_runs(filters, limit=1)
        text = newest[0].tags.get(OUTAGE_TAG) if newest else None
        try:
            self._known = ProblemFile.model_validate_json(text) if text else ProblemFile()
        except pydantic.ValidationError:  # another version wrote it
            self._known = ProblemFile()
        return self._known


@dataclass
class Reporting:
    """One evaluation, from its beginning to its messages.

    `owner` is the mirror in this Dagster instance. `before` are the problems when it began; `zone_error` is the reason
    why they can't be read or written.
    """

    composed: Project
    owner: str
    outage: RunTagMemory
    interval_seconds: float
    before: ProblemFile = field(init=False)
    zone_error: MirrorError | None = field(default=None, init=False)
    _began_ms: int = field(default_factory=lambda: int(time.time() * 1000), init=False)

    def __post_init__(self) -> None:
        """Read the problems."""
        self._store = ProblemStore(self.composed.store)
        try:
            self.before = self._store.read()
        except MirrorError as error:
            self.before, self.zone_error = ProblemFile(), error

    @property
    def failed_before(self) -> frozenset[ProblemKey]:
        """The checks that an evaluation before this one has found to fail."""
        return frozenset(one.key for one in self.before.problems if one.ended_ms is None)

    def finish(self, results: Results, known: frozenset[ProblemKey] | None) -> list[StoredProblem]:
        """Store and send; return the errors that are new. `known` are all checks, None if only some were selected."""
        new = list[StoredProblem]()
        if self.zone_error is None:
            try:
                new += self._report(self._store, self.before.generation, results, known)
            except MirrorError as error:
                self.zone_error = error
        if known is not None:
            zone, why = None, self.zone_error
            if why is not None:
                code = why.code.value
                zone = FailedCheck(f"can't be used ({code})", why.what, next_step=why.next_step, code=code)
            new += self._report(self.outage, self.outage.read().generation, {_ZONE: zone}, frozenset((_ZONE,)))
        return new

    def _report(
        self,
        memory: ProblemStore | RunTagMemory,
        generation: int,
        results: Results,
        known: frozenset[ProblemKey] | None,
    ) -> list[StoredProblem]:
        interval_ms = round(self.interval_seconds * 1000)
        evaluation = Evaluation(self.owner, generation, self._began_ms, interval_ms, results, known)
        config, now_ms = self.composed.config, int(time.time() * 1000)
        deliveries = [one for feature in config.all_features if (one := feature.delivery(config, now_ms)) is not None]

        def spoken_for(problem: StoredProblem) -> bool:
            return problem.key in results or problem.owner == self.owner

        def with_claims(file: ProblemFile) -> ProblemFile:
            file = evaluation.apply(file)
            for delivery in deliveries:
                file = delivery.claim(file, spoken_for)
            return file

        before, after = memory.change(with_claims)
        for delivery in deliveries:
            if delivery.has_claims:
                accepted = delivery.deliver(after)
                memory.change(partial(delivery.settle, accepted=accepted))
        return [one for one in newly_open(before, after) if not after.muted(one.subject, self._began_ms)]


def evaluated(found: Sequence[EvaluatedCheck]) -> dict[ProblemKey, FailedCheck | None]:
    """Return the results of checks; a check that was skipped, or follows from one that failed or was, has none.

    Checks of staged slices have none either: a slice that they stop fails the table's check not_failing.
    """
    ranks = {(one.key.subject, one.key.check): _rank(one.evaluation) for one in found if not one.evaluation.passed}
    results = dict[ProblemKey, FailedCheck | None]()
    for one in found:
        passed, rank = one.evaluation.passed, _rank(one.evaluation)
        follows = any(ranks.get((one.key.subject, cause), -1) >= rank for cause in one.check.follows)
        if one.check.asset == AssetKind.CHANGES or SKIPPED in one.evaluation.metadata or (follows and not passed):
            continue
        results[one.key] = None if passed else _failed_check(one.check, one.evaluation)
    return results


def _rank(one: dg.AssetCheckEvaluation) -> int:
    """Return how severe a failure is; a skipped check is as severe as any: it may have failed."""
    return Severity.ERROR.rank if SKIPPED in one.metadata else _severity(one).rank


def _severity(one: dg.AssetCheckEvaluation) -> Severity:
    return Severity.WARN if one.severity is dg.AssetCheckSeverity.WARN else Severity.ERROR


def _failed_check(check: Check, one: dg.AssetCheckEvaluation) -> FailedCheck:
    values = {name: str(value.value or "") for name, value in one.metadata.items()}
    code = values.get("code") or None
    of_mirror = " of the mirror" if check.asset == AssetKind.MIRROR else ""
    return FailedCheck(
        what=f"check {check.name}{of_mirror} fails" + (f" ({code})" if code else ""),
        text=(one.description or "It has failed.").partition(NEXT)[0],
        severity=_severity(one),
        next_step=values.get("next_step", ""),
        code=code,
        page=f"assets/{'/'.join(one.asset_key.path)}?view=checks&checkDetail={check.name}",
        may_pass=check.may_pass,
    )


def discovery_results(config: Config) -> Iterator[tuple[ProblemKey, FailedCheck | None]]:
    """Yield whether each place of `discover` is listed as before, and each folder whose name another table has."""
    for rule in config.discovered.rules:
        text, _, next_step = rule.trouble.partition(NEXT)
        trouble = FailedCheck("is not listed as before", text, next_step=next_step, code=rule.code)
        yield ProblemKey(rule.place, "", "discover"), trouble if rule.trouble else None
    for row in config.discovered.tables:
        if row.state is FoundState.NAME_TAKEN:
            text, _, next_step = row.reason.partition(NEXT)
            what = f"is not mirrored: the name {row.name} is taken"
            yield ProblemKey(row.address, "", "name_taken"), FailedCheck(what, text, Severity.WARN, next_step)


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


def without_lost_tables(results: Results, config: Config) -> dict[ProblemKey, FailedCheck | None]:
    """Return the results without failures of discovered tables that follow from the loss of their place.

    The next scan may detect that the place is lost: until then, such a failure may pass.
    """
    listed = {rule.rule: not rule.trouble for rule in config.discovered.rules}
    is_listed = {table.name: listed[table.rule] for table in config.discovered.tables if table.state.is_mirrored}
    after = dict[ProblemKey, FailedCheck | None]()
    for key, failed in results.items():
        is_lost = failed is not None and failed.code in _LOST and key.subject in is_listed
        if failed is None or not is_lost:
            after[key] = failed
        elif is_listed[key.subject]:
            after[key] = replace(failed, may_pass=True)
    return after


def new_problems(problems: list[StoredProblem]) -> StopError:
    """Return the error of a run of `checks` that has found new errors."""
    found = joined([f"{one.subject}: {one.what}: {one.text}" for one in problems]).removesuffix(".")
    return NEW_PROBLEMS(count=count(len(problems), "new problem"), found=found, next_step=problems[0].next_step or None)
