"""Compares the mirror's status of a table with the landed files: states, waiting files, the source's version."""

from __future__ import annotations

from mirror_assets.errors import MirrorError
from mirror_assets.landing.control_file import read_control_file
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName, landing_number
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Mirror, MonitoredTable
from mirror_assets.pipeline.backoff import unresolved_failure
from mirror_assets.pipeline.context import TableContext
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.replicating import Replication, check_replicating
from mirror_assets.zones import Store

# The version of an applied file is searched in this many generations: a mirror that lags further is shown without one.
_READ_BACK = 20


def read_replication(context: TableContext, mirror: Mirror, now: float) -> Replication:
    """Return the state of the table's replication at `now` (seconds since 1970).

    An error of the mirror is part of the result. Raises what the landing zone's store and the manifest raise.
    """
    manifest = context.manifest()
    if manifest is None or manifest.next_number == 1:
        return Replication(0, manifest.covered if manifest else -1)
    landed = manifest.next_number - 1
    try:
        database, table, days = mirror.database(), mirror.table(context.name), mirror.retention_days()
    except MirrorError as error:
        return Replication(landed, manifest.covered, refused=error)
    # The mirror alone looks healthy while runs of the table fail.
    failure = unresolved_failure(context, manifest, drive(read_rebuild(context.name), context.store))
    return Replication(
        landed,
        manifest.covered,
        table,
        database,
        stuck_seconds=_stuck_seconds(context, manifest, table, now),
        version=mirrored_version(context.store, context.name, manifest, table),
        retention_days=days,
        stopped_before=f"{failure.counted}, see the check not_failing" if failure else None,
    )


def check_replication(context: TableContext, mirror: Mirror, now: float) -> CheckResult:
    """Return the result of the check `replicating` at `now`. Raises what `read_replication` raises."""
    limits = context.table.replication
    return check_replicating(read_replication(context, mirror, now), limits.warn_seconds, limits.error_seconds)


def mirrored_version(store: Store, name: TableName, manifest: Manifest, table: MonitoredTable | None) -> int | None:
    """Return the source's version that the mirror has; None if it is unknown. Raises ManifestCorrupt.

    Reads the generations before the manifest's while files wait, a few at most. Fabric reports no file numbers: there
    the version is known once everything is applied.
    """
    if table is None:
        return None
    if table.has_applied(manifest):
        return manifest.covered if manifest.loading is None else None
    if table.applied_number is None:
        return None
    for generation in range(manifest.generation - 1, max(0, manifest.generation - 1 - _READ_BACK), -1):
        kept = drive(read_control_file(Manifest, name.history(manifest.epoch, generation)), store).record
        if kept is None:
            return None
        if kept.next_number - 1 <= table.applied_number:
            return kept.covered if kept.loading is None else None
    return None


def _stuck_seconds(context: TableContext, manifest: Manifest, table: MonitoredTable | None, now: float) -> float:
    """Return how long a file has waited while nothing was applied; 0 where none waits.

    A table that applies its files is not stuck, however many wait: the time counts from the last applied file.
    """
    if table is not None and table.has_applied(manifest):
        return 0.0
    found = context.store.list(context.name.folder)
    waiting = sorted((number, info) for info in found if (number := landing_number(info.name)))
    if table is not None and table.applied_number is not None:
        waiting = [one for one in waiting if one[0] > table.applied_number]
    elif table is not None:
        # Fabric reports no file numbers, and keeps the last file, processed or not: the last ones wait.
        waiting = waiting[-max(1, table.waiting_files) :]
    since = [info.modified for _, info in waiting if info.modified is not None][:1]
    if table is not None and table.last_sync is not None:
        since.append(table.last_sync.timestamp())
    return max(0.0, now - max(since)) if since and waiting else 0.0
