"""Direct Lake's limits per capacity, as data with their date and source (reference `direct-lake` §1.1).

Microsoft's page has them as one table for Direct Lake on OneLake and on SQL alike. A newer page means new rows here.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.direct_lake.guardrails.errors import SkuUnknown

SOURCE = "Microsoft, Direct Lake overview, Fabric capacity requirements"
SOURCE_URL = "https://learn.microsoft.com/fabric/fundamentals/direct-lake-overview"
# The date that the page itself bears; versions of it up to August 2026 have the same table.
SOURCE_DATE = "2025-09-22"
# The page doesn't say whether its GB are 10⁹ bytes: the smaller reading promises nothing too much.
GB = 10**9


@dataclass(frozen=True)
class Sku:
    """A capacity's limits; the first name is today's, the others are sold no more or for trials.

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
    """The capacity called so, in any spelling of case. Raises SkuUnknown."""
    found = next((sku for sku in SKUS if name.upper() in sku.names), None)
    if found is None:
        raise SkuUnknown(name, tuple(name for sku in SKUS for name in sku.names))
    return found
