"""Direct Lake's limits per capacity, as data with their date and source, and what happens over them.

Reference `direct-lake` §1.1: Microsoft's page has them as one table for Direct Lake on OneLake and on SQL alike. A
newer page means new rows here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mirror_assets.direct_lake.errors import sku_unknown

SOURCE = "Microsoft, Direct Lake overview, Fabric capacity requirements"
# https://learn.microsoft.com/fabric/fundamentals/direct-lake-overview
# The date that the page itself bears; versions of it up to August 2026 have the same table.
SOURCE_DATE = "2025-09-22"
# The page doesn't say whether its GB are 10⁹ bytes: the smaller reading promises nothing too much.
GB = 10**9


class Limit(str, Enum):
    """What is limited: the first three per table, the last for all tables of a model together.

    Microsoft doesn't define the model's size on disk; whole tables are counted here, the most that it can mean.
    """

    FILES = "files"
    ROW_GROUPS = "row groups"
    ROWS = "rows"
    MODEL_BYTES = "bytes on disk"


@dataclass(frozen=True)
class Sku:
    """A capacity's limits; the first name is current, the others are retired or for trials.

    `files`, `row_groups` and `rows` are per table; `model_bytes` is the model's size on disk, None for unlimited.
    `memory_bytes` is no limit: beyond it, columns are paged in and out, and queries are slower.
    """

    names: tuple[str, ...]
    files: int
    row_groups: int
    rows: int
    model_bytes: int | None
    memory_bytes: int

    @property
    def name(self) -> str:
        """Its name today."""
        return self.names[0]


def _sku(names: str, files: int, million_rows: int, model_gb: int | None, memory_gb: int) -> Sku:
    """A row of the table; in all of them, as many row groups are allowed as files."""
    model_bytes = None if model_gb is None else model_gb * GB
    return Sku(tuple(names.split("/")), files, files, million_rows * 10**6, model_bytes, memory_gb * GB)


SKUS = (
    _sku("F2", 1_000, 300, 10, 3),
    _sku("F4", 1_000, 300, 10, 3),
    _sku("F8", 1_000, 300, 10, 3),
    _sku("F16", 1_000, 300, 20, 5),
    _sku("F32", 1_000, 300, 40, 10),
    _sku("F64/FT1/P1", 5_000, 1_500, None, 25),
    _sku("F128/P2", 5_000, 3_000, None, 50),
    _sku("F256/P3", 5_000, 6_000, None, 100),
    _sku("F512/P4", 10_000, 12_000, None, 200),
    _sku("F1024/P5", 10_000, 24_000, None, 400),
    _sku("F2048", 10_000, 24_000, None, 400),
)


def sku_of(name: str) -> Sku:
    """Return the capacity of this name, in any case. Raises SettingError for an unknown one."""
    found = next((sku for sku in SKUS if name.upper() in sku.names), None)
    if found is None:
        known = ", ".join(name for sku in SKUS for name in sku.names)
        raise sku_unknown(name, known)
    return found


class Mode(str, Enum):
    """The kinds of Direct Lake, as a model's connection and its property DirectLakeBehavior have it."""

    ONELAKE = "Direct Lake on OneLake"
    SQL = "Direct Lake on SQL, Automatic"
    SQL_ONLY = "Direct Lake on SQL, DirectLakeOnly"

    @property
    def fails(self) -> bool:
        """Whether over a limit queries fail; else they are slower, by DirectQuery."""
        return self is not Mode.SQL


def consequence(mode: Mode, limit: Limit) -> str:
    """Say what happens over the limit, in one sentence (reference `direct-lake` §1.2).

    Microsoft's pages don't agree on whether one table over its limits takes Direct Lake from the whole model
    ("evaluated per query" in the overview, "can prevent Direct Lake mode for the entire model" in How Direct Lake
    works). By tests of others, which no page confirms, the refresh of a model on SQL succeeds with a warning, and that
    of a model on OneLake fails.
    """
    if mode is Mode.ONELAKE:
        return "framing fails, and there is no DirectQuery to fall back to: the model can't be refreshed or queried"
    if mode is Mode.SQL_ONLY:
        return "queries fail"
    if limit is Limit.MODEL_BYTES:
        return "all queries to the model fall back to DirectQuery, which is slower"
    return "queries to the table, perhaps to the whole model, fall back to DirectQuery, which is slower"
