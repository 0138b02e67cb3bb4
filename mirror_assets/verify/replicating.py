"""Check, by the mirror's status, that the replicator runs, mirrors the table and applies its files in time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mirror_assets.errors import REBUILD_STEP, MirrorError, RetryError, UnknownOutcome
from mirror_assets.monitoring import DatabaseState, DatabaseStatus, MonitoredTable, TableState
from mirror_assets.verify.check_result import CheckResult

REPLICATING = "replicating"


@dataclass(frozen=True)
class Replication:
    """The landed files of a table, and the mirror's status of it.

    `landed` is the number of the newest landing file, 0 before the first. `database` is the state of the mirrored
    database in Fabric; the stand-in has none. `refused` is the error of the request for the status. `stuck_seconds` is
    how long files have waited while none was applied. `version` is the source's version that the mirror has, None if
    unknown; `covered` is the landed one. `stopped_before` says why nothing newer lands.
    """

    landed: int
    covered: int
    table: MonitoredTable | None = None
    database: DatabaseStatus | None = None
    refused: MirrorError | None = None
    stuck_seconds: float = 0.0
    version: int | None = None
    retention_days: int | None = None
    stopped_before: str | None = None


def check_replicating(seen: Replication, warn_seconds: float | None, error_seconds: float | None) -> CheckResult:
    """Fail if the mirror has stopped or files wait too long; warn if it is slow, does not answer, or reports a warning.

    None disables a limit. A table of which nothing has landed passes, unless the mirror has it.
    """
    found = _first_problem(seen, warn_seconds, error_seconds) or CheckResult(REPLICATING, note=_note(seen))
    return replace(found, metadata=_metadata(seen))


def _first_problem(seen: Replication, warn: float | None, error: float | None) -> CheckResult | None:
    """Return the first problem, the database's before the table's: its state often explains the table's."""
    if seen.landed == 0:
        return None if seen.table is None else _problem(_EMPTIED, is_warning=True, next_step=_LOAD_AGAIN)
    if seen.refused is not None:
        passing = isinstance(seen.refused, RetryError | UnknownOutcome)
        text, step = f"the mirror did not report its status: {seen.refused.what}", seen.refused.next_step
        return _problem(text, is_warning=passing, next_step=step)
    stopped = _database_problem(seen.database) or _table_problem(seen.table) or _stuck_problem(seen, warn, error)
    if stopped is None and seen.table is not None and seen.table.message:
        return _problem(f"the replicator warns ({seen.table.state.value}): {seen.table.message}", is_warning=True)
    return stopped


def _problem(text: str, *, is_warning: bool, next_step: str = "") -> CheckResult:
    return CheckResult(REPLICATING, (text,), is_warning=is_warning, next_step=next_step)


_EMPTIED = "the mirror has the table, but the landing zone has no manifest of it: its folder was deleted or moved"
_LOAD_AGAIN = (
    "find out which program did that. The next run loads the table again with a snapshot; to restore the folder "
    "instead, stop runs first."
)
_START = "run `mirror-assets fabric start`."
# What is wrong with a database in this state, and the next step.
_DATABASE = {
    DatabaseState.PAUSED: ("is paused, as after a pause of its capacity, and does not resume automatically", _START),
    DatabaseState.STOPPED: (
        "was stopped; after a restart, it reads the landing zone from the first file on",
        "run `mirror-assets fabric start --replay`, then rebuild every table.",
    ),
    DatabaseState.STOPPING: ("is being stopped", "find out who stops it."),
    DatabaseState.INITIALIZED: ("was never started", _START),
}


def _database_problem(database: DatabaseStatus | None) -> CheckResult | None:
    if database is None:
        return None
    because = f" (Fabric says: {database.message})" if database.message else ""
    if database.state in _DATABASE:
        what, step = _DATABASE[database.state]
        return _problem(f"the mirrored database {what}{because}", is_warning=False, next_step=step)
    if database.state is DatabaseState.INITIALIZING:
        step = f"wait, then {_START}"
        return _problem(f"the mirrored database is not ready yet{because}", is_warning=True, next_step=step)
    if database.message or database.state is DatabaseState.UNKNOWN:
        said = database.message or "no state"
        return _problem(f"the mirrored database is {database.state.value}, and Fabric says: {said}", is_warning=True)
    return None


def _table_problem(table: MonitoredTable | None) -> CheckResult | None:
    if table is None or table.state not in (TableState.FAILED, TableState.STOPPED):
        return None
    code = f"{table.error_code}: " if table.error_code else ""
    why = f"{code}{table.message or 'no reason given'}"
    step = f"correct what Fabric names, then {REBUILD_STEP.format(table=table.name)}."
    return _problem(
        f"the replicator has stopped the table ({table.state.value}): {why}", is_warning=False, next_step=step
    )


_APPLY = "run `mirror-assets replicate`: it applies them, or names the error."
# Microsoft's page on resumed capacities; a stopped open mirror starts again from the first landing file.
_RESUME = (
    "check in the portal that the capacity is active and not overloaded. After a capacity was resumed, Fabric can show "
    "Running while it applies nothing: on the mirrored database's page, select `Resume replication` if it is offered; "
    "if not, select `Stop replication`, then run `mirror-assets fabric start --replay` and rebuild every table."
)
_MINUTES_FROM = 120.0


def _stuck_problem(seen: Replication, warn: float | None, error: float | None) -> CheckResult | None:
    """Return the problem of files that wait, whatever the state: Fabric may show `Replicating` while idle."""
    limit = next((x for x in (error, warn) if x is not None and seen.stuck_seconds > x), None)
    if limit is None:
        return None
    table, seconds = seen.table, seen.stuck_seconds
    waited = f"{seconds:.0f} seconds" if seconds < _MINUTES_FROM else f"{seconds / 60:.0f} minutes"
    if table is None:
        text = f"the mirror does not show the table, though files have waited for {waited}"
    else:
        files = f"{table.waiting_files} landing files wait" if table.waiting_files > 1 else "a landing file waits"
        said = f"; it says: {table.message}" if table.message else ""
        text = f"nothing was applied for {waited} while {files}, though the table is shown as {table.state.value}{said}"
    return _problem(text, is_warning=limit is not error, next_step=_APPLY if seen.database is None else _RESUME)


def _metadata(seen: Replication) -> dict[str, int | float | str]:
    metadata: dict[str, int | float | str] = {"landed_version": seen.covered, "landed_file": seen.landed}
    if seen.version is not None:
        metadata = {"mirror_version": seen.version, **metadata}
    if seen.table is not None:
        metadata |= {"state": seen.table.state.value, "waiting_files": seen.table.waiting_files}
        if seen.table.applied_number is not None:
            metadata["applied_file"] = seen.table.applied_number
        if seen.table.sync_latency_seconds is not None:
            metadata["sync_latency_seconds"] = seen.table.sync_latency_seconds
    if seen.database is not None:
        metadata["database"] = seen.database.state.value
    if seen.stuck_seconds > 0:
        metadata["stuck_seconds"] = round(seen.stuck_seconds)
    if seen.retention_days is not None:
        metadata["retention_days"] = seen.retention_days
    return metadata


def _note(seen: Replication) -> str:
    """Return the state with the source's version, and why nothing newer lands, if so."""
    if seen.landed == 0:
        return "nothing of the table has landed yet"
    state = seen.table.state.value if seen.table is not None else "not there yet"
    if seen.version is None:
        text = f"{state}; its version of the source is unknown while files wait"
    else:
        behind = "" if seen.version >= seen.covered else f", and version {seen.covered} has landed"
        text = f"{state}; it has version {seen.version} of the source{behind}"
    days = seen.retention_days
    kept = "" if days is None else f"; Fabric keeps its old files for {days} {'day' if days == 1 else 'days'}"
    stopped = f"; nothing newer lands: {seen.stopped_before}" if seen.stopped_before else ""
    return f"{text}{kept}{stopped}"
