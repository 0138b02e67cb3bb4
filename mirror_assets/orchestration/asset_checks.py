"""Dagster asset checks that wrap the checks of pipeline and verify, which the command line runs, too.

All checks of an asset are one step, of which a run selects some: with hundreds of tables, step definitions are most of
what loading a code location costs.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import dagster as dg

from mirror_assets.composition import Project, history_context, no_spark
from mirror_assets.config import Config, RetentionLimits, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.history.history_context import HistoryContext
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.asset_names import RANGE_START, Kind, MetadataItem, asset_key
from mirror_assets.orchestration.materialize import failing, failure, parse_slices
from mirror_assets.orchestration.resources import (
    LandingZone,
    SourceTables,
    SparkSessions,
    mirror_of,
    project,
)
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.check import BLOCKING_CHECKS, refusal, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD, check_not_failing, check_not_held
from mirror_assets.pipeline.pending import deadline_at, feed_deadline, pending_commits, table_lag
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.pipeline.stage_range import staged_ahead
from mirror_assets.source.row_counts import feed_files
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.landed import full_continuity, incremental_continuity, metadata_unchanged
from mirror_assets.verify.reconciliation import ReconcileState, check_reconciled
from mirror_assets.verify.timeliness import Consequence, ReadDeadline, check_lag, check_retention


def check_result(
    asset: dg.AssetKey,
    result: CheckResult,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    pictures: Mapping[str, MetadataItem] | None = None,
) -> dg.AssetCheckResult:
    """Convert a CheckResult to an AssetCheckResult, with its figures and the `pictures` as metadata."""
    metadata: dict[str, MetadataItem] = {**result.figures, **(pictures or {})}
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=result.check,
        passed=result.passed,
        severity=dg.AssetCheckSeverity.WARN if result.is_warning else severity,
        description=result.message or result.note or None,
        metadata=metadata,
    )


def retention_result(
    asset: dg.AssetKey, deadline: ReadDeadline, limits: RetentionLimits, check: str = "retention"
) -> dg.AssetCheckResult:
    """Return an ERROR, or a WARN before it, when little time is left to read the next commit."""
    error = check_retention(deadline, limits.error_seconds, check)
    if not error.passed:
        return check_result(asset, error)
    return check_result(asset, check_retention(deadline, limits.warn_seconds, check), dg.AssetCheckSeverity.WARN)


def merged(name: str, results: list[tuple[str, CheckResult]]) -> CheckResult:
    """Return one result for several slices; problems name their slice, figures add up."""
    problems = tuple(f"slice {key}: {problem}" for key, result in results for problem in result.problems)
    figures: dict[str, int | float | str] = {"slices": len(results)}
    for _, result in results:
        for figure, value in result.figures.items():
            known = figures.get(figure, 0)
            if isinstance(value, int | float) and isinstance(known, int | float):
                figures[figure] = known + value
    return CheckResult(name, problems, figures)


CheckRuns: TypeAlias = Mapping[str, Callable[[], dg.AssetCheckResult]]


def checks_step(
    asset: dg.AssetKey, specs: Sequence[dg.AssetCheckSpec]
) -> Callable[[Callable[..., Iterator[dg.AssetCheckResult]]], dg.AssetChecksDefinition]:
    """Return the decorator of the step that runs the asset's checks."""
    return dg.multi_asset_check(name=f"{'__'.join(asset.path)}_checks", specs=specs, can_subset=True)


def run_selected(context: dg.AssetCheckExecutionContext, checks: CheckRuns) -> Iterator[dg.AssetCheckResult]:
    """Run the selected checks, and go on when one can't run; the step then fails in the end. Raises dagster.Failure."""
    selected = {key.name for key in context.selected_asset_check_keys}
    errors = list[MirrorError]()
    for name, run in checks.items():
        if name not in selected:
            continue
        try:
            result = run()
        except MirrorError as error:
            context.log.error(f"{name} could not run: {error}")  # noqa: TRY400 the message says all
            errors.append(error)
        else:
            yield result
    if errors:
        raise failure(errors[0]) from errors[0]


_PARTITION = "dagster/partition"


def is_slice_run(context: dg.AssetCheckExecutionContext) -> bool:
    """Return whether the run materializes slices; else it only runs checks."""
    return RANGE_START in context.run.tags or _PARTITION in context.run.tags


def retention_spec(source: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check retention: a WARN, then an ERROR, before a pending commit can be vacuumed away."""
    return dg.AssetCheckSpec("retention", asset=source, description="How long the next commit can still be read.")


def run_retention(table_context: TableContext) -> dg.AssetCheckResult:
    """Run the check retention."""
    table = table_context.table
    deadline = feed_deadline(table_context, pending_commits(table_context), time.time())
    return retention_result(asset_key(Kind.SOURCE, table.name), deadline, table.retention)


_DESCRIPTIONS = {
    "key_presence": "Key columns are there and hold no NULL.",
    "key_uniqueness": "At most one change per key and commit.",
    "marker_values": "__rowMarker__ is the last column, int32, in {0, 1, 2, 4}; slices of inserts alone have none.",
    "parts_unchanged": "Every part is the file that was staged.",
    "row_counts": "Every row read from the feed is accounted for in the parts.",
    "row_order": "Keys with several changes appear in commit order, compared with the feed.",
    "schema_compatibility": "Columns and types are the slice's, and fit what has landed before.",
}


def staged_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return all blocking checks of staged slices as one step, which reads the parts once."""
    feed = asset_key(Kind.CHANGE_FEED, table.name)
    specs = [
        dg.AssetCheckSpec(name, asset=feed, blocking=True, description=_DESCRIPTIONS[name]) for name in BLOCKING_CHECKS
    ]

    @dg.multi_asset_check(name=f"{'__'.join(feed.path)}_staged", specs=specs)
    def staged(
        context: dg.AssetCheckExecutionContext,
        landing_zone: LandingZone,
        sources: SourceTables,
        spark: SparkSessions,
    ) -> Iterator[dg.AssetCheckResult]:
        with failing():
            table_context = project(config, landing_zone, sources, spark).table(table)
            checked = _check_slices(context, table_context, _requested(context))
        for name in BLOCKING_CHECKS:
            yield check_result(
                feed, merged(name, [(key, f) for key, found in checked for f in found if f.check == name])
            )

    return staged


def _check_slices(
    context: dg.AssetCheckExecutionContext, table_context: TableContext, requested: set[str] | None
) -> list[tuple[str, tuple[CheckResult, ...]]]:
    """Run the checks of the requested staged slices, up to the first that fails; None requests all staged slices."""
    checked = []
    for record in staged_ahead(table_context):
        if requested is not None and record.slice not in requested:
            continue
        try:
            _, results = run_checks(table_context, record)
        except MirrorError as error:
            _note_attempt(context, table_context, requested, error, record.key)
            raise
        checked.append((record.slice, results))
        refused = refusal(table_context, record, results)
        if refused is not None:
            _note_attempt(context, table_context, requested, refused, record.key)
            break
    return checked


def _note_attempt(
    context: dg.AssetCheckExecutionContext,
    table_context: TableContext,
    requested: set[str] | None,
    error: MirrorError,
    key: SliceKey,
) -> None:
    """Record a failed attempt to land the slice; a run that only runs checks is no attempt."""
    if requested is not None:
        note_failure(table_context, error, context.log.warning, key)


def _requested(context: dg.AssetCheckExecutionContext) -> set[str] | None:
    """Return the run's slices, or None in a run of checks only."""
    if not is_slice_run(context):
        return None
    return {str(key) for key in parse_slices(context.partition_keys)}


_CONTINUITY = "Files in sequence, as committed. A run of slices checks new files, a run of checks all files."


def landed_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the checks file_continuity, metadata_unchanged, lag, not_held and not_failing."""
    zone = asset_key(Kind.LANDING_ZONE, table.name)
    specs = [
        dg.AssetCheckSpec("file_continuity", asset=zone, blocking=True, description=_CONTINUITY),
        dg.AssetCheckSpec(
            "metadata_unchanged", asset=zone, blocking=True, description="_metadata.json declares the first keys."
        ),
        dg.AssetCheckSpec("lag", asset=zone, description="How long the oldest uncovered commit has waited."),
        dg.AssetCheckSpec(
            NOT_HELD,
            asset=zone,
            blocking=True,
            description="The table does not wait for a person to have it rebuilt.",
        ),
        dg.AssetCheckSpec(
            NOT_FAILING, asset=zone, blocking=True, description="The newest run of the table has not failed."
        ),
    ]

    @checks_step(zone, specs)
    def landed(
        context: dg.AssetCheckExecutionContext, landing_zone: LandingZone, sources: SourceTables
    ) -> Iterator[dg.AssetCheckResult]:
        runs: CheckRuns = {
            "file_continuity": lambda: _continuity(context, config, table.name, landing_zone),
            "metadata_unchanged": lambda: check_result(
                zone, metadata_unchanged(landing_zone.store(), table.name, table.mirror_keys)
            ),
            "lag": lambda: _lag_result(zone, project(config, landing_zone, sources).table(table)),
            NOT_HELD: lambda: check_result(zone, check_not_held(project(config, landing_zone, sources).table(table))),
            NOT_FAILING: lambda: check_result(
                zone, check_not_failing(project(config, landing_zone, sources).table(table))
            ),
        }
        yield from run_selected(context, runs)

    return landed


def _continuity(
    context: dg.AssetCheckExecutionContext, config: Config, table: TableName, landing_zone: LandingZone
) -> dg.AssetCheckResult:
    store, applied = landing_zone.store(), _applied(config, table, landing_zone)
    continuous = incremental_continuity if is_slice_run(context) else full_continuity
    return check_result(asset_key(Kind.LANDING_ZONE, table), continuous(store, table, applied))


def _lag_result(zone: dg.AssetKey, table_context: TableContext) -> dg.AssetCheckResult:
    limits = table_context.table.lag
    lag = table_lag(pending_commits(table_context), time.time())
    error = check_lag(lag, limits.error_seconds)
    if not error.passed:
        return check_result(zone, error)
    return check_result(zone, check_lag(lag, limits.warn_seconds), dg.AssetCheckSeverity.WARN)


def _applied(config: Config, table: TableName, zone: LandingZone) -> int | None:
    """Return the number of the last applied file: 0 when the mirror has no table yet, None for Fabric."""
    if config.mirror.fabric is not None:
        return None  # Fabric does not report file numbers
    status = mirror_of(config, zone).table(table)
    return status.applied_number if status else 0


_WAITING = (ReconcileState.PENDING, ReconcileState.MISSING, ReconcileState.LOADING)


def reconciled_spec(mirror: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check reconciled: an ERROR on a difference, a WARN while files wait to be applied."""
    return dg.AssetCheckSpec("reconciled", asset=mirror, blocking=True, description="The mirror equals the source.")


def run_reconciled(composed: Project, table: TableSettings) -> dg.AssetCheckResult:
    """Run the check reconciled."""
    result = reconcile_table(composed.table(table), composed.mirror())
    severity = dg.AssetCheckSeverity.WARN if result.state in _WAITING else dg.AssetCheckSeverity.ERROR
    return check_result(asset_key(Kind.MIRROR, table.name), check_reconciled(result), severity)


_NAME = "history_retention"


def history_checks(config: Config, table: TableSettings) -> list[dg.AssetChecksDefinition]:
    """Return the check history_retention: a WARN, then an ERROR, before a commit is vacuumed that is not kept."""
    history = asset_key(Kind.HISTORY, table.name)

    @dg.asset_check(asset=history, name=_NAME, description="How long the next commit to keep can still be read.")
    def history_retention(sources: SourceTables) -> dg.AssetCheckResult:
        with failing():
            context = history_context(config, table, sources.log(table.name), no_spark)
            deadline = history_deadline(context, time.time())
        return retention_result(history, deadline, table.retention, _NAME)

    return [history_retention]


def history_deadline(context: HistoryContext, now: float) -> ReadDeadline:
    """Return until when the history can read its next commit, at `now` (seconds since 1970).

    Reads both logs and lists the files that the commit needs. A history that has not begun has no next commit.
    """
    tip, newest = context.source.state(), context.history.newest()
    times, next_read = context.source.times(tip), newest.last + 1 if newest else None
    return deadline_at(context.source, tip, times, next_read, feed_files, Consequence.LOST, now)
