"""Direct Lake's limits per capacity, and whether a table, and its predicted mirror, fit (reference `direct-lake` §1).

Microsoft has one table of limits for Direct Lake on OneLake and on SQL. A newer page means new rows here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING

from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeMode

if TYPE_CHECKING:  # the settings know the capacities without loading pyarrow
    from mirror_assets.features.direct_lake.footers import Footers
    from mirror_assets.features.direct_lake.framing import Growth
    from mirror_assets.source.replay import Snapshot

SOURCE = "Microsoft, Direct Lake overview, Fabric capacity requirements"
# https://learn.microsoft.com/fabric/fundamentals/direct-lake-overview
# The date that the page shows; versions of it up to August 2026 have the same table.
SOURCE_DATE = "2025-09-22"
# The page doesn't say whether its GB are 10⁹ bytes; this is the stricter reading.
GB = 10**9


class Limit(str, Enum):
    """The limits: the first three per table, the last for all tables of a model together.

    Microsoft doesn't define the model's size on disk; whole tables are counted here, the most it can mean.
    """

    FILES = "files"
    ROW_GROUPS = "row groups"
    ROWS = "rows"
    MODEL_BYTES = "bytes on disk"


@dataclass(frozen=True)
class Sku:
    """A capacity's limits; the first name is current, the others are retired or for trials.

    `files`, `row_groups` and `rows` are per table; `model_bytes` is the model's size on disk, None for unlimited.
    Memory is not a limit: beyond it, columns are paged in and out, and queries are slower.
    """

    names: tuple[str, ...]
    files: int
    row_groups: int
    rows: int
    model_bytes: int | None

    @property
    def name(self) -> str:
        """The current name."""
        return self.names[0]


def _sku(names: str, files: int, million_rows: int, model_gb: int | None) -> Sku:
    """Return a row of the table; in all of them, the limits of row groups and files are equal."""
    model_bytes = None if model_gb is None else model_gb * GB
    return Sku(tuple(names.split("/")), files, files, million_rows * 10**6, model_bytes)


SKUS = (
    _sku("F2", 1_000, 300, 10),
    _sku("F4", 1_000, 300, 10),
    _sku("F8", 1_000, 300, 10),
    _sku("F16", 1_000, 300, 20),
    _sku("F32", 1_000, 300, 40),
    _sku("F64/FT1/P1", 5_000, 1_500, None),
    _sku("F128/P2", 5_000, 3_000, None),
    _sku("F256/P3", 5_000, 6_000, None),
    _sku("F512/P4", 10_000, 12_000, None),
    _sku("F1024/P5", 10_000, 24_000, None),
    _sku("F2048", 10_000, 24_000, None),
)


def sku_of(name: str) -> Sku:
    """Return the capacity of this name, in any case. Raises ValueError for an unknown one."""
    found = next((sku for sku in SKUS if name.upper() in sku.names), None)
    if found is None:
        known = ", ".join(known for sku in SKUS for known in sku.names)
        raise ValueError(f"{name} is not a capacity; expected one of {known}")
    return found


MODE_NAMES = {
    DirectLakeMode.ONELAKE: "Direct Lake on OneLake",
    DirectLakeMode.SQL: "Direct Lake on SQL, Automatic",
    DirectLakeMode.SQL_ONLY: "Direct Lake on SQL, DirectLakeOnly",
}


def consequence(mode: DirectLakeMode, limit: Limit) -> str:
    """Return the consequence of exceeding the limit, in one sentence (reference `direct-lake` §1.2).

    Microsoft's pages disagree on whether one table over its limits affects the whole model ("evaluated per query" in
    the overview, "can prevent Direct Lake mode for the entire model" in How Direct Lake works).
    """
    if mode is DirectLakeMode.ONELAKE:
        return "framing fails, and there is no DirectQuery to fall back to: the model can't be refreshed or queried"
    if mode is DirectLakeMode.SQL_ONLY:
        return "queries fail"
    if limit is Limit.MODEL_BYTES:
        return "all queries to the model fall back to DirectQuery, which is slower"
    return "queries to the table, perhaps to the whole model, fall back to DirectQuery, which is slower"


@dataclass(frozen=True)
class TableSize:
    """The numbers of one table at one version that Direct Lake limits.

    Deletion vectors hide `hidden_rows`, which `rows` doesn't include. `growth` is None if the log is too short.
    """

    table: str
    files: int
    row_groups: int
    rows: int
    hidden_rows: int
    bytes: int
    growth: Growth | None = None

    @property
    def fits(self) -> tuple[SkuFit, ...]:
        """The comparisons with each capacity, the smallest first, as a model of this table only."""
        return tuple(fit(sku, self) for sku in SKUS)

    @property
    def smallest(self) -> Sku | None:
        """The smallest capacity that all numbers certainly fit into; None if there is none."""
        return next((found.sku for found in self.fits if found.verdict is FitVerdict.FITS), None)


def measure(table: str, snapshot: Snapshot, footers: Footers, growth: Growth | None = None) -> TableSize:
    """Measure a version; `footers` are those of its files."""
    hidden = sum(file.hidden_rows for file in snapshot.files)
    return TableSize(
        table=table,
        files=len(snapshot.files),
        row_groups=len(footers.group_rows),
        rows=int(footers.rows.sum()) - hidden,
        hidden_rows=hidden,
        bytes=sum(file.bytes for file in snapshot.files),
        growth=growth,
    )


# (bytes of the mirror up to which a row applies, rows per row group, rows per file). Microsoft, "Cross-workload table
# maintenance and optimization", 2026-02-12. Later versions of the page omit the sizes: they are a model, no promise.
_MIRROR_SIZES = (
    (10 * GB, 2_000_000, 10_000_000),
    (2_560 * GB, 4_000_000, 60_000_000),
    (float("inf"), 8_000_000, 80_000_000),
)


def predicted_mirror(source: TableSize) -> TableSize:
    """Predict the source's mirror once Fabric has compacted it.

    Only Fabric decides on a mirror's files (reference `direct-lake` §1.4). The mirror is assumed to have the source's
    bytes per row. Until it is compacted, each merge adds files: one every 15 s makes 1,000 in 4.2 hours.
    """
    stored = source.rows + source.hidden_rows
    size = round(source.bytes * source.rows / stored) if stored else 0
    _, per_group, per_file = next(row for row in _MIRROR_SIZES if size <= row[0])
    full_files, rest = divmod(source.rows, per_file)
    growth = source.growth
    return TableSize(
        table=f"{source.table} (mirror, predicted)",
        files=ceil(source.rows / per_file),
        row_groups=full_files * ceil(per_file / per_group) + ceil(rest / per_group),
        rows=source.rows,
        hidden_rows=0,
        bytes=size,
        growth=None if growth is None or growth.rows is None else replace(growth, files=growth.rows / per_file),
    )


class FitVerdict(str, Enum):
    """Whether a number is within its limit; unsure: only with hidden rows is it over the limit."""

    FITS = "fits"
    UNSURE = "unsure"
    OVER = "over"


@dataclass(frozen=True)
class LimitUse:
    """One figure against its limit. `table` is None for the model; `allowed` is None for unlimited.

    `days_left` is when the limit is reached at the present growth; None if that is unknown, or never.
    """

    limit: Limit
    table: str | None
    used: int
    allowed: int | None
    verdict: FitVerdict
    days_left: float | None = None

    @property
    def headroom_percent(self) -> float | None:
        """How much of the limit is free, negative beyond it; None without a limit."""
        return None if self.allowed is None else 100 * (self.allowed - self.used) / self.allowed

    def __str__(self) -> str:
        """The figure and its limit, for people."""
        allowed = "unlimited" if self.allowed is None else f"{self.allowed:,} are allowed"
        return f"{self.table or 'the model'}: {self.used:,} {self.limit.value}, {allowed}"


@dataclass(frozen=True)
class SkuFit:
    """All numbers of a table, as a model, against one capacity."""

    sku: Sku
    uses: tuple[LimitUse, ...]

    @property
    def verdict(self) -> FitVerdict:
        """The worst verdict of all numbers."""
        verdicts = {use.verdict for use in self.uses}
        return next(v for v in (FitVerdict.OVER, FitVerdict.UNSURE, FitVerdict.FITS) if v in verdicts)

    @property
    def tightest(self) -> LimitUse | None:
        """The use with the least headroom; None if nothing is limited."""
        limited = [(use.headroom_percent, use) for use in self.uses if use.headroom_percent is not None]
        return min(limited, key=lambda one: one[0])[1] if limited else None

    @property
    def days_left(self) -> float | None:
        """Days until the first limit is reached at the present growth; None if none will be."""
        return min((use.days_left for use in self.uses if use.days_left is not None), default=None)


def fit(sku: Sku, table: TableSize) -> SkuFit:
    """Compare a model of this table only with the capacity."""
    growth = table.growth
    files_a_day = growth.files if growth else None
    # The log doesn't have the row groups of removed files: new files are assumed to have as many as the present ones.
    groups_a_day = None if files_a_day is None or not table.files else files_a_day * table.row_groups / table.files
    rows = _use(Limit.ROWS, table.table, table.rows, sku.rows, growth.rows if growth else None)
    # Whether rows that a deletion vector hides count is not documented.
    if rows.verdict is FitVerdict.FITS and table.rows + table.hidden_rows > sku.rows:
        rows = replace(rows, verdict=FitVerdict.UNSURE)
    return SkuFit(
        sku,
        (
            _use(Limit.FILES, table.table, table.files, sku.files, files_a_day),
            _use(Limit.ROW_GROUPS, table.table, table.row_groups, sku.row_groups, groups_a_day),
            rows,
            _use(Limit.MODEL_BYTES, None, table.bytes, sku.model_bytes, growth.bytes if growth else None),
        ),
    )


def _use(limit: Limit, table: str | None, used: int, allowed: int | None, a_day: float | None) -> LimitUse:
    if allowed is None:
        return LimitUse(limit, table, used, None, FitVerdict.FITS)
    if used > allowed:
        return LimitUse(limit, table, used, allowed, FitVerdict.OVER, days_left=0.0)
    days = (allowed - used) / a_day if a_day is not None and a_day > 0 else None
    return LimitUse(limit, table, used, allowed, FitVerdict.FITS, days)
