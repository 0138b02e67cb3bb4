"""A maintenance plan as a value, what it is made from besides the log, and the plan as a SQL script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mirror_assets.direct_lake.maintenance.bins import FileSizes
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan


class Dialect(str, Enum):
    """Whose Spark runs the statements: any with Delta, or Fabric's, which can write V-Order."""

    DELTA = "delta"
    FABRIC = "fabric"


class StepKind(str, Enum):
    """What a step is, in the order in which a plan has them."""

    PUBLISH = "publish"
    OPTIMIZE = "optimize"
    REORG = "reorg"
    RETENTION = "retention"
    VACUUM = "vacuum"

    @property
    def rewrites(self) -> bool:
        """Whether the step replaces files by others with the same rows."""
        return self in (StepKind.OPTIMIZE, StepKind.REORG)


@dataclass(frozen=True)
class Effect:
    """What a step does to a table's live files, those of all partitions together.

    Bytes of files that are not written yet are estimated, by the share of rows that are shown. `rows_to_load` and
    `bytes_to_load` are those of new files: Direct Lake loads them when it is framed the next time; rows are None where
    statistics don't tell. `is_exact`: the numbers of files are what Spark will make, else they are estimated, too.
    """

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    rows_to_load: int | None = 0
    bytes_to_load: int = 0
    is_exact: bool = True


@dataclass(frozen=True)
class Step:
    """One statement, its reason, and its predicted effect on live files, None for no effect."""

    kind: StepKind
    statement: str
    why: str
    effect: Effect | None = None


@dataclass(frozen=True)
class LeftOut:
    """A step that the plan doesn't have, and why."""

    kind: StepKind
    why: str


@dataclass(frozen=True)
class MaintenancePlan:
    """What to run, in this order, on a table as it was at `version`.

    `settings` are statements for the session that runs the steps. `request` is the body that makes Fabric's table
    maintenance API do the like, as JSON; None outside of Fabric, and when there is nothing for it to do.
    """

    table: str
    version: int
    dialect: Dialect
    steps: tuple[Step, ...]
    left_out: tuple[LeftOut, ...] = ()
    settings: tuple[str, ...] = ()
    request: str | None = None


@dataclass(frozen=True)
class SafeRetention:
    """For how many seconds VACUUM must keep files that are not live any more.

    `statement` makes the table keep them that long, or longer; None where its property does already. `files` and
    `bytes` are what VACUUM would then delete; None where the statement is to run first.
    """

    seconds: float
    statement: str | None = None
    files: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, plan: VacuumPlan) -> SafeRetention:
        """Return the retention that keeps what anyone needs, by a plan of VACUUM."""
        if plan.statement is not None:
            return cls(plan.min_safe_retention_seconds, plan.statement)
        return cls(plan.min_safe_retention_seconds, None, len(plan.deleted), plan.deleted_bytes)


@dataclass(frozen=True)
class Unpublished:
    """A mirror that has not covered its source's newest version, and the command that publishes the rest."""

    covered: int
    newest: int
    command: str


@dataclass(frozen=True)
class Worth:
    """When rewriting pays, for it makes Direct Lake load the rows again (reference `direct-lake` §4).

    OPTIMIZE: a partition with `min_files` files or more, of which at least `saved_share` would go; and while the table
    has more than `max_files` files (a SKU's guardrail), also those where most files go per byte. REORG: more than
    `wasted_share` of the bytes that it would rewrite are hidden rows or dropped columns.
    """

    min_files: int = 8
    saved_share: float = 0.5
    max_files: int | None = None
    wasted_share: float = 0.05


@dataclass(frozen=True)
class FabricTable:
    """The table as Fabric's lakehouse names it; a schema only where the lakehouse has schemas."""

    name: str
    schema: str | None = None


@dataclass(frozen=True)
class MaintenanceInput:
    """What a plan is made from, besides the table's log.

    `table` is its name in SQL; None: its address. `dropped` are the bytes, by file, of columns that the schema has no
    more, as footers tell. `retention` None: VACUUM was not planned, so this plan has none. `rewritten`: an earlier
    plan has just replaced files.
    """

    table: str | None = None
    dialect: Dialect = Dialect.DELTA
    fabric: FabricTable | None = None
    sizes: FileSizes = field(default_factory=FileSizes)
    worth: Worth = field(default_factory=Worth)
    dropped: Mapping[str, int] = field(default_factory=dict)
    unpublished: Unpublished | None = None
    retention: SafeRetention | None = None
    rewritten: bool = False


def script(plan: MaintenancePlan) -> str:
    """Write the plan as SQL; what is no SQL (a command, a request, a step that was left out) is a comment."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: MaintenancePlan) -> Iterator[str]:
    yield f"-- {plan.table} at version {plan.version}"
    if not plan.steps:
        yield "-- nothing to do"
    yield from (f"{setting};" for setting in plan.settings)
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield f"-- {number}. {step.kind.value}: {step.why}"
        if step.effect is not None:
            yield f"-- {_effect(step.effect)}"
        yield f"-- {step.statement}" if step.kind is StepKind.PUBLISH else f"{step.statement};"
    for left_out in plan.left_out:
        yield ""
        yield f"-- no {left_out.kind.value}: {left_out.why}"
    if plan.request is not None:
        yield ""
        yield "-- the same for whole tables, as the body of Fabric's table maintenance request:"
        yield from (f"-- {line}" for line in plan.request.splitlines())


def _effect(effect: Effect) -> str:
    about = "" if effect.is_exact else "about "
    rows = "an unknown number of rows" if effect.rows_to_load is None else f"{effect.rows_to_load:,} rows"
    return (
        f"files {effect.files_before:,} -> {about}{effect.files_after:,}, "
        f"bytes {effect.bytes_before:,} -> about {effect.bytes_after:,}; "
        f"Direct Lake loads {rows} anew; 0 rows to publish"
    )
