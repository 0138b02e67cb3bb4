"""Plan a table's maintenance: OPTIMIZE, REORG, VACUUM, in this order. Nothing is run.

OPTIMIZE and REORG change no row, so the mirror has nothing to publish. Direct Lake loads rewritten files again, so both
are limited to partitions where rewriting pays (reference `direct-lake` §4). VACUUM is last: only it deletes files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil
from types import MappingProxyType

from mirror_assets.column_types import column_type
from mirror_assets.features.direct_lake.vacuum import VacuumPlan, effective_retention, hours, hours_at_least
from mirror_assets.source.actions import LiveFile, Metadata
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.schema import parse_schema
from mirror_assets.spark_names import quoted

# Delta's default: OPTIMIZE combines smaller files into files of up to this size.
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
# Delta refuses OPTIMIZE and VACUUM of tables whose catalog commits.
_MANAGED = frozenset({"catalogManaged", "catalogOwned-preview"})
_MANAGED_WHY = "the table's catalog maintains it; Delta refuses everyone else"
_CUBE_TAG = "ZCUBE_ID"
_IGNORED = "not worth it in all partitions, and Delta ignores a condition on a partition column with a dot in its name"
_NONE_DROPPED: Mapping[str, int] = MappingProxyType({})


class StepKind(str, Enum):
    """The kinds of steps, in the order in which a plan has them."""

    OPTIMIZE = "optimize"
    REORG = "reorg"
    RETENTION = "retention"
    VACUUM = "vacuum"


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
    """A step of a plan: its statement, empty for an omitted step, and the reason for either.

    `effect` is that on live files, None for no effect.
    """

    kind: StepKind
    why: str
    statement: str = ""
    effect: RewriteEffect | None = None


def rewrite_steps(
    snapshot: Snapshot,
    table: str,
    *,
    optimize: bool = True,
    purge: bool = True,
    vorder: bool = False,
    max_files: int | None = None,
    dropped: Mapping[str, int] = _NONE_DROPPED,
) -> list[MaintenanceStep]:
    """Plan OPTIMIZE, and REORG to purge, on the table, whose name in SQL is `table`. Raises SCHEMA_UNREADABLE.

    `vorder`: Fabric's Spark runs the plan, and can write V-Order. If more than `max_files` files (a capacity's limit)
    would be left, OPTIMIZE takes more partitions. `dropped` are the bytes of dropped columns, by file.
    """
    steps: list[MaintenanceStep] = []
    if snapshot.protocol.features & _MANAGED:
        steps += [MaintenanceStep(StepKind.OPTIMIZE, _MANAGED_WHY)] if optimize else []
        return [*steps, MaintenanceStep(StepKind.REORG, _MANAGED_WHY)] if purge else steps
    optimized = frozenset[str]()
    if optimize:
        step, optimized = _optimize(snapshot, table, dropped, max_files, vorder=vorder)
        steps.append(step)
    if purge:
        # OPTIMIZE purges what it rewrites, so it comes first and REORG takes the rest.
        steps.append(_reorg(snapshot, table, dropped, optimized))
    return steps


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
    def pays(self) -> bool:
        """Whether OPTIMIZE of the partition saves enough files."""
        count = len(self.files)
        return count >= _LEAST_FILES and self.saved > 0 and self.saved >= _LEAST_SAVED_SHARE * count


def _by_partition(
    snapshot: Snapshot, is_rewritten: Callable[[LiveFile], bool], dropped: Mapping[str, int]
) -> list[_Rewrite]:
    """Return each partition with the files that a statement rewrites; sizes are estimated by the visible rows."""
    groups: defaultdict[PartitionKey, list[LiveFile]] = defaultdict(list)
    for file in snapshot.files:
        groups[tuple(file.partition.get(column) for column in snapshot.metadata.partition_columns)].append(file)
    rewrites = []
    for key, files in groups.items():
        rewritten = tuple(file for file in files if is_rewritten(file))
        size = sum(file.bytes - _wasted_bytes(file, dropped) for file in rewritten)
        rewrites.append(_Rewrite(key, tuple(files), rewritten, ceil(size / _TARGET_BYTES)))
    return rewrites


def _optimize(
    snapshot: Snapshot, table: str, dropped: Mapping[str, int], max_files: int | None, *, vorder: bool
) -> tuple[MaintenanceStep, frozenset[str]]:
    """Return the step OPTIMIZE, and the paths of the files that it rewrites.

    Clustered tables take neither WHERE nor ZORDER. ZORDER is never planned: it rewrites all files each time.
    """
    is_clustered = "clustering" in snapshot.protocol.features
    has_new = any(_CUBE_TAG not in file.tags for file in snapshot.files)

    def is_rewritten(file: LiveFile) -> bool:
        if is_clustered:
            return has_new
        is_hidden = file.vector is not None and (file.rows is None or file.vector.rows > _MAX_HIDDEN_SHARE * file.rows)
        return file.bytes < _TARGET_BYTES or is_hidden

    rewrites = [one for one in _by_partition(snapshot, is_rewritten, dropped) if len(one.rewritten) > 1]
    chosen = [one for one in rewrites if one.pays]
    if max_files is not None and len(snapshot.files) - sum(one.saved for one in chosen) > max_files:
        chosen = [one for one in rewrites if one.saved > 0]
    where = _where(snapshot, rewrites, chosen)
    if not chosen or where is None:
        possible = sum(max(0, one.saved) for one in rewrites)
        why = f"not worth it: there would be {possible:,} files fewer of {len(snapshot.files):,}"
        return MaintenanceStep(StepKind.OPTIMIZE, why if where is not None else _IGNORED), frozenset()
    paths = frozenset(file.path for one in chosen for file in one.rewritten)
    partitions = f" in {len(chosen):,} partitions" if snapshot.metadata.partition_columns else ""
    why = f"{len(paths):,} files{partitions} become about {len(paths) - sum(one.saved for one in chosen):,}"
    if is_clustered:
        why += "; Delta clusters a table below 100 GiB again as a whole"
    statement = f"OPTIMIZE {table}{where}{' VORDER' if vorder else ''}"
    return MaintenanceStep(StepKind.OPTIMIZE, why, statement, _effect(snapshot, chosen)), paths


def _reorg(snapshot: Snapshot, table: str, dropped: Mapping[str, int], optimized: frozenset[str]) -> MaintenanceStep:
    """Return the step REORG TABLE … APPLY (PURGE) for files that OPTIMIZE doesn't rewrite.

    Delta rewrites every file of the chosen partitions that has a deletion vector or a dropped column.
    """

    def is_rewritten(file: LiveFile) -> bool:
        return file.path not in optimized and (file.vector is not None or dropped.get(file.path, 0) > 0)

    def pays(one: _Rewrite) -> bool:
        wasted = sum(_wasted_bytes(file, dropped) for file in one.rewritten)
        return wasted > _LEAST_WASTED_SHARE * sum(file.bytes for file in one.rewritten)

    rewrites = [one for one in _by_partition(snapshot, is_rewritten, dropped) if one.rewritten]
    if not rewrites:
        return MaintenanceStep(StepKind.REORG, "no file is known to have a deletion vector or a dropped column")
    if "clustering" in snapshot.protocol.features:
        why = "Delta leaves it to OPTIMIZE, which purges clustered tables as they change"
        return MaintenanceStep(StepKind.REORG, why)
    chosen = [one for one in rewrites if pays(one)]
    if not chosen:
        count = sum(len(one.rewritten) for one in rewrites)
        why = f"not worth it: {_LEAST_WASTED_SHARE:.0%} or less of the {count:,} files with any is hidden or dropped"
        return MaintenanceStep(StepKind.REORG, why)
    where = _where(snapshot, rewrites, chosen)
    if where is None:
        return MaintenanceStep(StepKind.REORG, _IGNORED)
    files = [file for one in chosen for file in one.rewritten]
    hidden, in_dropped = sum(file.hidden_rows for file in files), sum(dropped.get(file.path, 0) for file in files)
    reasons = [f"{hidden:,} rows are hidden by deletion vectors"] if hidden else []
    reasons += [f"{in_dropped:,} bytes are dropped columns"] if in_dropped else []
    why = f"in {len(files):,} files {' and '.join(reasons)}"
    statement = f"REORG TABLE {table}{where} APPLY (PURGE)"
    return MaintenanceStep(StepKind.REORG, why, statement, _effect(snapshot, chosen))


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


def vacuum_steps(snapshot: Snapshot, table: str, plan: VacuumPlan, *, rewritten: bool) -> list[MaintenanceStep]:
    """Plan VACUUM with a retention that keeps needed files; `rewritten`: earlier steps have replaced files.

    RETAIN is never written: since Delta 4.1 it is ignored, and only the table's property counts (reference
    `direct-lake` §3.3). Before that, VACUUM without RETAIN uses the same property. Raises PropertyUnreadable.
    """
    if snapshot.protocol.features & _MANAGED:
        return [MaintenanceStep(StepKind.VACUUM, _MANAGED_WHY)]
    least = plan.min_safe_retention_seconds
    kept, needed = max(effective_retention(snapshot), least if plan.statement else 0.0), hours_at_least(least)
    if plan.statement is None and not plan.deleted:
        return [MaintenanceStep(StepKind.VACUUM, "no file is old enough to be deleted")]
    if kept < least:
        return [MaintenanceStep(StepKind.VACUUM, f"{_FILE_RETENTION} is below the {needed} that are needed")]
    if rewritten and kept < _REFRESH_SECONDS:
        why = f"{_FILE_RETENTION} is {hours(kept)}: models still use files that were just replaced; refresh them first"
        return [MaintenanceStep(StepKind.VACUUM, why)]
    why = f"files that are no longer live are kept for {hours(kept)}, and {needed} are needed"
    if plan.statement is None:
        deleted = f"deletes {len(plan.deleted):,} files of {plan.deleted_bytes:,} bytes"
        return [MaintenanceStep(StepKind.VACUUM, f"{deleted}; {why}", f"VACUUM {table}")]
    longer = f"frames or the mirror need files for {needed}, longer than the table keeps them"
    return [
        MaintenanceStep(StepKind.RETENTION, longer, plan.statement),
        MaintenanceStep(StepKind.VACUUM, f"deletes old files; {why}", f"VACUUM {table}"),
    ]


def script(table: str, version: int, steps: Iterable[MaintenanceStep]) -> str:
    """Return the steps as SQL, to run on the table as it is at this version; omitted ones are comments at the end."""
    lines, omitted, number = [f"-- {table} at version {version}"], list[str](), 0
    for step in steps:
        if not step.statement:
            omitted += ["", f"-- no {step.kind.value}: {step.why}"]
            continue
        number += 1
        lines += ["", f"-- {number}. {step.kind.value}: {step.why}"]
        if (effect := step.effect) is not None:
            rows = "an unknown number of rows" if effect.rows_to_load is None else f"{effect.rows_to_load:,} rows"
            lines.append(
                f"-- files {effect.files_before:,} -> about {effect.files_after:,}; "
                f"Direct Lake loads {rows} again; no row is mirrored again"
            )
        lines.append(f"{step.statement};")
    if number == 0:
        lines.append("-- nothing to do")
    return "\n".join([*lines, *omitted]) + "\n"


PartitionKey = tuple[str | None, ...]
"""Values of the partition columns, in the order of the metadata."""


def literal(value: str, kind: str) -> str:
    """Return a partition value of the log as a literal of its column's type."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")  # a backslash begins an escape in Spark
    return column_type(kind).literal.format(escaped)


def partition_predicate(metadata: Metadata, keys: Sequence[PartitionKey]) -> str:
    """Return the condition that selects exactly these partitions, at least one. Raises SCHEMA_UNREADABLE."""
    types = {field.name: field.type for field in parse_schema(metadata.schema_string).fields}

    def equals(name: str, value: str | None) -> str:
        return f"{quoted(name)} IS NULL" if value is None else f"{quoted(name)} = {literal(value, types[name])}"

    return " OR ".join(" AND ".join(map(equals, metadata.partition_columns, key)) for key in keys)
