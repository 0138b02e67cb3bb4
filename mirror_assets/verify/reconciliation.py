"""Request and result of a comparison of mirror and source, and the check on it. Plain values, no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mirror_assets.lakes.access import Located
from mirror_assets.landing.generations import EqualVersions
from mirror_assets.redaction import marked
from mirror_assets.source.schema import ALL_ROWS, Projection
from mirror_assets.verify.check_result import CheckResult


class ReconcileState(str, Enum):
    """How mirror and source compare at the covered version.

    OUTDATED: rows have landed by other expressions than the settings have, or the source was made again as another
    table, and the next run sees to it.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    PENDING = "pending"
    STOPPED = "stopped"
    MISSING = "missing"
    LOADING = "loading"
    OUTDATED = "outdated"


class Side(str, Enum):
    """On which side a differing key has rows."""

    ONLY_IN_SOURCE = "only in source"
    ONLY_IN_MIRROR = "only in mirror"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Share:
    """The columns that one of `of` comparisons in turn reads, beside the keys; `number` begins with 1."""

    number: int
    of: int

    @classmethod
    def after(cls, number: int, most: int, columns: int, keys: int) -> Share:
        """Return the share that follows share `number`, of at most this many of a table with these columns."""
        of = max(1, min(most, columns - keys if keys else columns + 1))
        return cls(number % of + 1, of)

    @property
    def is_all(self) -> bool:
        """Whether it is the only one."""
        return self.of == 1

    def columns(self, names: tuple[str, ...], keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns to compare of all landed ones.

        Without keys, columns that are equal one by one may still be combined otherwise in the rows, so the last
        share has all of them.
        """
        if keys:
            values = [name for name in names if name not in keys]
            chosen = {*keys, *values[self.number - 1 :: self.of]}
        else:
            chosen = {*names} if self.number == self.of else {*names[self.number - 1 :: self.of - 1]}
        return tuple(name for name in names if name in chosen)

    def __str__(self) -> str:
        """`2 of 7`."""
        return f"{self.number} of {self.of}"


@dataclass(frozen=True)
class ReconcileRequest:
    """Compare the mirror at path `mirror` with the table at `source` as of `version`, the covered one.

    `source_id` is the id of the table that was mirrored. `columns` are the landed columns, each with its landing type
    as Spark spells it. Without `keys`, whole rows are compared. `projection` selects the rows of the source. `since` is
    the first landed version of a mirror that began without a snapshot: then only the keys that the mirror has are
    compared. `opened_for` is another text for each incarnation of the mirror; Delta's cached state of a table is used
    only by requests with the same text. With `share`, only its columns are compared if the source is large. Nothing is
    read if both tables are still as `equal_at` says. `managed` is the source if its catalog manages its commits.
    """

    table: str
    source: str
    source_id: str
    version: int
    keys: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    mirror: str
    opened_for: str
    projection: Projection = ALL_ROWS
    since: int | None = None
    compared: str = ""
    share: Share | None = None
    equal_at: EqualVersions | None = None
    managed: Located | None = None


@dataclass(frozen=True)
class DifferenceSample:
    """One differing key: its values as text in the order of the request's keys (of all columns without keys).

    `columns` are the differing ones. It is empty if only the numbers of rows differ.
    """

    key: tuple[str | None, ...]
    side: Side
    columns: tuple[str, ...]
    source_rows: int
    mirror_rows: int


@dataclass(frozen=True)
class Reconciliation:
    """The result of a comparison; row counts are None if nothing was compared.

    `version` is -1 before the first load has landed. `reason` says why the replicator stopped the table, how far its
    first load is, that nothing has landed, or that the source is another table. `columns` differ in some row.
    `ignored_columns` exist only in the mirror: the source dropped them. With `since` (see ReconcileRequest),
    `source_rows` counts only rows of the mirror's keys. `equal_versions` are the compared ones, if both are equal. With
    `share`, only its columns were compared; `is_unchanged`: nothing was read, because neither table has changed since
    an equal result.
    """

    table: str
    state: ReconcileState
    version: int
    source_rows: int | None = None
    mirror_rows: int | None = None
    columns: tuple[str, ...] = ()
    samples: tuple[DifferenceSample, ...] = ()
    ignored_columns: tuple[str, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    since: int | None = None
    equal_versions: EqualVersions | None = None
    share: Share | None = None
    is_unchanged: bool = False

    @property
    def read(self) -> str:
        """What was read, as text."""
        if self.is_unchanged:
            return "nothing: neither table has changed since the newest equal result"
        return "all columns" if self.share is None else f"share {self.share} of the columns"

    @property
    def summary(self) -> str:
        """The state as text."""
        if self.state is not ReconcileState.EQUAL:
            return str(self.state.value)
        return "equal to source" if self.since is None else f"equal to source in what landed since {self.since}"


def check_reconciled(result: Reconciliation) -> CheckResult:
    """Fail if mirror and source differ, and while they can't be compared: files wait, or the table is not there yet."""
    metadata: dict[str, int | float | str] = {"state": result.state.value, "version": result.version}
    if result.source_rows is not None and result.mirror_rows is not None:
        metadata |= {"source_rows": result.source_rows, "mirror_rows": result.mirror_rows, "seconds": result.seconds}
        metadata["read"] = result.read
    return CheckResult("reconciled", _problems(result), metadata, next_step=_NEXT_STEPS.get(result.state, ""))


_NEXT_STEPS = {
    ReconcileState.PENDING: "wait: the replicator applies them automatically; the check `replicating` fails if not.",
    ReconcileState.LOADING: "wait: the next run continues the first load.",
    ReconcileState.OUTDATED: "wait: the next run does what `on_break` says, or launch the job `rebuild` or `repair`.",
    ReconcileState.MISSING: "wait until the replicator has polled the table; the check `replicating` has more.",
    ReconcileState.STOPPED: "correct what the message says; `mirror-assets fabric status` shows what Fabric reports.",
    ReconcileState.DIFFERENT: "find the other writer in the mirror or in the landing zone, then run the job `repair`.",
}


def _problems(result: Reconciliation) -> tuple[str, ...]:
    if result.state is ReconcileState.EQUAL:
        return ()
    if result.state is ReconcileState.PENDING:
        return ("landing files wait for the replicator",)
    if result.state in (ReconcileState.LOADING, ReconcileState.OUTDATED):
        return (result.reason,)
    if result.state is ReconcileState.STOPPED:
        return (f"the replicator has stopped the table: {result.reason}",)
    if result.state is ReconcileState.MISSING:
        return ("the mirror has no such table yet",)
    counts = f"{result.source_rows} rows in the source, {result.mirror_rows} in the mirror"
    columns = f"columns that differ: {', '.join(result.columns)}" if result.columns else "no column sum differs"
    reason = (result.reason,) if result.reason else ()
    return (*reason, counts, columns, *(shown(sample) for sample in result.samples))


def shown(sample: DifferenceSample) -> str:
    """Return a differing key as text: its values, the side with rows, and the columns that differ."""
    key = ", ".join("NULL" if value is None else value for value in sample.key)
    columns = f" in {', '.join(sample.columns)}" if sample.columns else ""
    return f"key {marked(key)} {sample.side.value}{columns}"
