"""Plan a table's maintenance: OPTIMIZE, REORG, VACUUM, in this order. Nothing is run.

OPTIMIZE and REORG change no row, so the mirror has nothing to publish. Direct Lake loads rewritten files again, so both
are limited to partitions where rewriting pays (reference `direct-lake` §4). VACUUM is last: only it deletes files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import ceil

from mirror_assets.direct_lake.sql import PartitionKey, partition_predicate
from mirror_assets.direct_lake.vacuum import VacuumPlan, effective_retention, hours, hours_at_least
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.sql_names import table_at

# Delta's default: OPTIMIZE combines smaller files into files of up to this size.
# Delta's default: bytes that OPTIMIZE gives a file at most.
_TARGET_BYTES = 2**30
# OPTIMIZE also rewrites files with a larger share of hidden rows (`optimize.maxDeletedRowsRatio`).
_MAX_HIDDEN_SHARE = 0.05
# OPTIMIZE pays in a partition with this many files, of which at least this share would disappear.
_LEAST_FILES, _LEAST_SAVED_SHARE = 8, 0.5
# REORG pays in a partition if more of the rewritten bytes than this share are hidden rows or dropped columns.
_LEAST_WASTED_SHARE = 0.05
_FILE_RETENTION = "delta.deletedFileRetentionDuration"
# Models framed before the plan runs need the rewritten files until they are refreshed.
_REFRESH_SECONDS = 86_400.0
# Delta refuses OPTIMIZE and VACUUM of tables whose catalog commits: the catalog maintains them.
_MANAGED = frozenset({"catalogManaged", "catalogOwned-preview"})
_CUBE_TAG = "ZCUBE_ID"
_IGNORED = "not worth it in all partitions, and Delta ignores a condition on a partition column with a dot in its name"


class StepKind(str, Enum):
    """The kinds of steps, in the order in which a plan has them."""

    OPTIMIZE = "optimize"
    REORG = "reorg"
    RETENTION = "retention"
    VACUUM = "vacuum"

    @property
    def rewrites(self) -> bool:
        """Whether the step replaces files by others with the same rows."""
        return self in (StepKind.OPTIMIZE, StepKind.REORG)


@dataclass(frozen=True)
class RewriteEffect:
    """The estimated effect of a step on a table's live files, those of all partitions together.

    Direct Lake loads at most `bytes_to_load` when it is framed the next time; rows are None without statistics.
    """

    files_before: int
    files_after: int
    rows_to_load: int | None
    bytes_to_load: int


@dataclass(frozen=True)
class MaintenanceStep:
    """One statement, its reason, and its effect on live files, None for no effect."""

    kind: StepKind
    statement: str
    why: str
    effect: RewriteEffect | None = None


@dataclass(frozen=True)
class LeftOut:
    """A step that the plan omits, and why."""

    kind: StepKind
    why: str


@dataclass(frozen=True)
class MaintenancePlan:
    """What to run, in this order, on a table as it was at `version`."""

    table: str
    version: int
    steps: tuple[MaintenanceStep, ...]
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class MaintenanceInput:
    """What a plan depends on besides the table's log.

    `table` is its name in SQL; None: its address. `vorder`: Fabric's Spark runs the plan, and can write V-Order. If the
    table has more than `max_files` files (a capacity's limit), OPTIMIZE takes more partitions. `dropped` are the bytes
    of dropped columns, by file. `vacuum` is the plan of VACUUM, None for no VACUUM. `rewritten`: an earlier plan has
    just replaced files.
    """

    table: str | None = None
    vorder: bool = False
    optimize: bool = True
    purge: bool = True
    max_files: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    vacuum: VacuumPlan | None = None
    rewritten: bool = False


def maintenance_plan(snapshot: Snapshot, wanted: MaintenanceInput) -> MaintenancePlan:
    """Plan what to run on the table. Raises schema_unreadable and property_unreadable."""
    found: list[MaintenanceStep | LeftOut] = []
    table = wanted.table or table_at(snapshot.uri)
    if snapshot.protocol.features & _MANAGED:
        kinds = (StepKind.OPTIMIZE, StepKind.REORG, StepKind.VACUUM)
        found += [LeftOut(kind, "the table's catalog maintains it; Delta refuses everyone else") for kind in kinds]
    else:
        optimize, optimized = _optimize(snapshot, table, wanted)
        # OPTIMIZE purges what it rewrites, so it comes first and REORG takes the rest.
        reorg = _reorg(snapshot, table, wanted, optimized)
        rewrites = wanted.rewritten or any(isinstance(one, MaintenanceStep) for one in (optimize, reorg))
        found += [optimize, reorg, *_vacuum(snapshot, table, wanted.vacuum, rewrites=rewrites)]
    steps = tuple(step for step in found if isinstance(step, MaintenanceStep))
    left_out = tuple(step for step in found if isinstance(step, LeftOut))
    return MaintenancePlan(table, snapshot.version, steps, left_out)


@dataclass(frozen=True)
class _Rewrite:
    """One partition: its files, those that a statement rewrites, and about how many files it makes of them."""

    key: PartitionKey
    files: tuple[LiveFile, ...]
    rewritten: tuple[LiveFile, ...]
    makes: int

    @property
    def saved(self) -> int:
        """How many files fewer there will be."""
        return len(self.rewritten) - self.makes

    @property
    def bytes(self) -> int:
        """Bytes of the rewritten files."""
        return sum(file.bytes for file in self.rewritten)


def _by_partition(
    snapshot: Snapshot, is_rewritten: Callable[[LiveFile], bool], wanted: MaintenanceInput
) -> list[_Rewrite]:
    """Return each partition with the files that a statement rewrites; sizes are estimated by the visible rows."""
    groups: defaultdict[PartitionKey, list[LiveFile]] = defaultdict(list)
    for file in snapshot.files:
        groups[tuple(file.partition.get(column) for column in snapshot.metadata.partition_columns)].append(file)
    rewrites = []
    for key, files in groups.items():
        rewritten = tuple(file for file in files if is_rewritten(file))
        size = sum(file.bytes - _wasted_bytes(file, wanted.dropped) for file in rewritten)
        rewrites.append(_Rewrite(key, tuple(files), rewritten, ceil(size / _TARGET_BYTES)))
    return rewrites


def _optimize(
    snapshot: Snapshot, table: str, wanted: MaintenanceInput
) -> tuple[MaintenanceStep | LeftOut, frozenset[str]]:
    """Return OPTIMIZE, or why there is none, and the paths of the files that it rewrites.

    Clustered tables take neither WHERE nor ZORDER. ZORDER is never planned: it rewrites all files each time.
    """
    if not wanted.optimize:
        return LeftOut(StepKind.OPTIMIZE, "it is switched off"), frozenset()
    is_clustered = "clustering" in snapshot.protocol.features
    has_new = any(_CUBE_TAG not in file.tags for file in snapshot.files)

    def is_rewritten(file: LiveFile) -> bool:
        if is_clustered:
            return has_new
        is_hidden = file.vector is not None and (file.rows is None or file.vector.rows > _MAX_HIDDEN_SHARE * file.rows)
        return file.bytes < _TARGET_BYTES or is_hidden

    rewrites = [one for one in _by_partition(snapshot, is_rewritten, wanted) if len(one.rewritten) > 1]
    chosen = [one for one in rewrites if _pays(one)]
    files = len(snapshot.files) - sum(one.saved for one in chosen)
    # Over the capacity's limit, the partitions that save most files per byte come next.
    rest = [one for one in rewrites if not _pays(one) and one.saved > 0]
    for one in sorted(rest, key=lambda one: -one.saved / (one.bytes + 1)):
        if wanted.max_files is not None and files > wanted.max_files:
            chosen.append(one)
            files -= one.saved
    where = _where(snapshot, rewrites, chosen)
    if not chosen or where is None:
        possible = sum(max(0, one.saved) for one in rewrites)
        why = f"not worth it: there would be {possible:,} files fewer of {len(snapshot.files):,}"
        return LeftOut(StepKind.OPTIMIZE, why if where is not None else _IGNORED), frozenset()
    saved, paths = sum(one.saved for one in chosen), [file.path for one in chosen for file in one.rewritten]
    partitions = f" in {len(chosen):,} partitions" if snapshot.metadata.partition_columns else ""
    why = f"{len(paths):,} files{partitions} become about {len(paths) - saved:,}"
    if is_clustered:
        why += "; Delta clusters a table below 100 GiB again as a whole"
    statement = f"OPTIMIZE {table}{where}{' VORDER' if wanted.vorder else ''}"
    return MaintenanceStep(StepKind.OPTIMIZE, statement, why, _effect(snapshot, chosen)), frozenset(paths)


def _pays(one: _Rewrite) -> bool:
    """Return whether OPTIMIZE of the partition saves enough files."""
    return len(one.files) >= _LEAST_FILES and one.saved > 0 and one.saved >= _LEAST_SAVED_SHARE * len(one.files)


def _reorg(
    snapshot: Snapshot, table: str, wanted: MaintenanceInput, optimized: frozenset[str]
) -> MaintenanceStep | LeftOut:
    """Return REORG TABLE … APPLY (PURGE) for files that OPTIMIZE doesn't rewrite, or why there is none.

    Delta rewrites every file of the chosen partitions that has a deletion vector or a dropped column.
    """
    if not wanted.purge:
        return LeftOut(StepKind.REORG, "it is switched off")

    def is_rewritten(file: LiveFile) -> bool:
        return file.path not in optimized and (file.vector is not None or wanted.dropped.get(file.path, 0) > 0)

    rewrites = [one for one in _by_partition(snapshot, is_rewritten, wanted) if one.rewritten]
    if not rewrites:
        return LeftOut(StepKind.REORG, "no file is known to have a deletion vector or a dropped column")
    if "clustering" in snapshot.protocol.features:
        return LeftOut(StepKind.REORG, "Delta leaves it to OPTIMIZE, which purges clustered tables as they change")
    chosen = [
        one
        for one in rewrites
        if sum(_wasted_bytes(file, wanted.dropped) for file in one.rewritten) > _LEAST_WASTED_SHARE * one.bytes
    ]
    if not chosen:
        count = sum(len(one.rewritten) for one in rewrites)
        why = f"not worth it: {_LEAST_WASTED_SHARE:.0%} or less of the {count:,} files with any is hidden or dropped"
        return LeftOut(StepKind.REORG, why)
    where = _where(snapshot, rewrites, chosen)
    if where is None:
        return LeftOut(StepKind.REORG, _IGNORED)
    files = [file for one in chosen for file in one.rewritten]
    hidden, dropped = sum(file.hidden_rows for file in files), sum(wanted.dropped.get(file.path, 0) for file in files)
    reasons = [f"{hidden:,} rows are hidden by deletion vectors"] if hidden else []
    reasons += [f"{dropped:,} bytes are dropped columns"] if dropped else []
    why = f"in {len(files):,} files {' and '.join(reasons)}"
    statement = f"REORG TABLE {table}{where} APPLY (PURGE)"
    return MaintenanceStep(StepKind.REORG, statement, why, _effect(snapshot, chosen))


def _wasted_bytes(file: LiveFile, dropped: Mapping[str, int]) -> int:
    """Return the bytes of dropped columns and, by their share, of hidden rows; all bytes of a file without statistics.

    A file without a deletion vector needs no statistics.
    """
    in_dropped = min(file.bytes, dropped.get(file.path, 0))
    if file.vector is None:
        return in_dropped
    hidden = file.vector.rows / file.rows if file.rows else 1.0
    return min(file.bytes, in_dropped + round(hidden * (file.bytes - in_dropped)))


def _where(snapshot: Snapshot, rewrites: Sequence[_Rewrite], chosen: Sequence[_Rewrite]) -> str | None:
    """Return the WHERE clause that limits a statement to the chosen partitions; empty if it isn't needed.

    None if the table is partitioned by a column with a dot in its name: Delta 4.4 would ignore the condition, and
    rewrite all partitions.
    """
    columns = snapshot.metadata.partition_columns
    if not columns or not chosen or len(chosen) == len(rewrites):
        return ""
    if any("." in name for name in columns):
        return None
    return f" WHERE {partition_predicate(snapshot.metadata, [one.key for one in chosen])}"


def _effect(snapshot: Snapshot, chosen: Sequence[_Rewrite]) -> RewriteEffect:
    files = [file for one in chosen for file in one.rewritten]
    rows = [file.rows - file.hidden_rows for file in files if file.rows is not None]
    return RewriteEffect(
        files_before=len(snapshot.files),
        files_after=len(snapshot.files) - sum(one.saved for one in chosen),
        rows_to_load=sum(rows) if len(rows) == len(files) else None,
        bytes_to_load=sum(file.bytes for file in files),
    )


def _vacuum(
    snapshot: Snapshot, table: str, plan: VacuumPlan | None, *, rewrites: bool
) -> list[MaintenanceStep | LeftOut]:
    """Return VACUUM with a retention that keeps needed files, or why there is none. `rewrites`: files were replaced.

    RETAIN is never written: since Delta 4.1 it is ignored, and only the table's property counts (reference
    `direct-lake` §3.3). Before that, VACUUM without RETAIN uses the same property.
    """
    if plan is None:
        return [LeftOut(StepKind.VACUUM, "it was not checked how long files are needed")]
    least = plan.min_safe_retention_seconds
    kept, needed = max(effective_retention(snapshot), least if plan.statement else 0.0), hours_at_least(least)
    if plan.statement is None and not plan.deleted:
        return [LeftOut(StepKind.VACUUM, "no file is old enough to be deleted")]
    if kept < least:
        return [LeftOut(StepKind.VACUUM, f"{_FILE_RETENTION} is below the {needed} that are needed")]
    if rewrites and kept < _REFRESH_SECONDS:
        why = f"{_FILE_RETENTION} is {hours(kept)}: models still use files that were just replaced; refresh them first"
        return [LeftOut(StepKind.VACUUM, why)]
    deleted = f"{len(plan.deleted):,} files of {plan.deleted_bytes:,} bytes"
    why = f"files that are no longer live are kept for {hours(kept)}, and {needed} are needed"
    if plan.statement is None:
        return [MaintenanceStep(StepKind.VACUUM, f"VACUUM {table}", f"deletes {deleted}; {why}")]
    longer = f"frames or the mirror need files for {needed}, longer than the table keeps them"
    return [
        MaintenanceStep(StepKind.RETENTION, plan.statement, longer),
        MaintenanceStep(StepKind.VACUUM, f"VACUUM {table}", f"deletes old files; {why}"),
    ]


def script(plan: MaintenancePlan) -> str:
    """Return the plan as SQL; omitted steps are comments."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: MaintenancePlan) -> Iterator[str]:
    yield f"-- {plan.table} at version {plan.version}"
    if not plan.steps:
        yield "-- nothing to do"
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield f"-- {number}. {step.kind.value}: {step.why}"
        if (effect := step.effect) is not None:
            rows = "an unknown number of rows" if effect.rows_to_load is None else f"{effect.rows_to_load:,} rows"
            yield (
                f"-- files {effect.files_before:,} -> about {effect.files_after:,}; "
                f"Direct Lake loads {rows} again; no row is mirrored again"
            )
        yield f"{step.statement};"
    for left_out in plan.left_out:
        yield ""
        yield f"-- no {left_out.kind.value}: {left_out.why}"
