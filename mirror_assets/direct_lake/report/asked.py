"""What a report is asked, besides the table."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror_assets.direct_lake.guard.frames import Frame
from mirror_assets.direct_lake.guard.needs import Mirror
from mirror_assets.direct_lake.guardrails.skus import SKUS, Sku
from mirror_assets.direct_lake.maintenance.values import MaintenanceInput

# The smallest capacity: what fits into it fits into all.
_SMALLEST = SKUS[0]


@dataclass(frozen=True)
class Readers:
    """Who still needs older versions of the table, and the retention that VACUUM is to be told, if any, in hours."""

    frames: tuple[Frame, ...] = ()
    mirror: Mirror | None = None
    retain_hours: float | None = None


@dataclass(frozen=True)
class Keeping:
    """The question for the rows of the newest months, by a column of dates."""

    column: str
    months: int


@dataclass(frozen=True)
class Questions:
    """What of the seed's questions is asked; what is left empty is not.

    `columns` are those that a model uses, `one_side` those on the one-side of a relationship. `partition_by` is a
    column that the table might be partitioned by, judged by the limits of `sku`.
    """

    columns: tuple[str, ...] = ()
    one_side: tuple[str, ...] = ()
    partition_by: str | None = None
    keeping: Keeping | None = None
    sku: Sku = _SMALLEST


@dataclass(frozen=True)
class Asked:
    """All that is asked; of `maintenance`, what the report itself finds (dropped columns, retention) is left empty."""

    readers: Readers = field(default_factory=Readers)
    questions: Questions = field(default_factory=Questions)
    maintenance: MaintenanceInput = field(default_factory=MaintenanceInput)
