"""The settings of Direct Lake and of maintenance, for each table."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from mirror_assets.config.document import Document
from mirror_assets.lakes.catalogs import CatalogCredentials, CatalogType
from mirror_assets.settings import LocalFile, Section
from mirror_assets.source.ranges import parse_point

if TYPE_CHECKING:
    from mirror_assets.config.rules import Mistakes


class DirectLakeMode(str, Enum):
    """The kinds of Direct Lake. They differ in what happens when a table exceeds a limit."""

    ONELAKE = "onelake"
    SQL = "sql"
    SQL_ONLY = "sql_only"


class Maintenance(str, Enum):
    """The steps of the job `maintenance`. VACUUM deletes no file that a frame or the mirror needs."""

    OPTIMIZE = "optimize"
    PURGE = "purge"
    VACUUM = "vacuum"


def _sku(value: object) -> object:
    from mirror_assets.features.direct_lake.guardrails import sku_of  # it needs the kinds of Direct Lake

    return None if value is None else sku_of(str(value)).name


def _frame(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a version or a time like 'yyyy-MM-dd HH:mm:ss', got {value!r}")  # noqa: TRY004 pydantic wants ValueError
    parse_point(value)
    return value


Frame = Annotated[str, BeforeValidator(_frame)]
Sku = Annotated[str | None, BeforeValidator(_sku)]


class DirectLakeSettings(Section):
    """The semantic model that reads the table through Direct Lake."""

    sku: Sku = Field(default=None, description="Capacity to compare with; null: the checks only report.")
    mode: DirectLakeMode = Field(default=DirectLakeMode.ONELAKE, description="Kind of Direct Lake.")
    frames: tuple[Frame, ...] = Field(default=(), description="Versions or times at which models are framed.")
    exports: tuple[LocalFile, ...] = Field(default=(), description="Files with the results of DAX INFO queries.")


class DirectLakeTable(Section):
    """The settings of a table for Direct Lake."""

    direct_lake: DirectLakeSettings = Field(
        default_factory=DirectLakeSettings, description="Direct Lake models that read the table."
    )
    maintenance: tuple[Maintenance, ...] = Field(
        default=(), description="Steps of the job `maintenance`: optimize, purge, vacuum."
    )


_READ_ONLY = (
    "the catalog's credentials for this table only allow reading; leave maintenance to the table's owner, or set "
    "`credentials: stores` in the catalog"
)


def no_vended_maintenance(document: Document) -> Mistakes:
    """Refuse maintenance of tables that are read with a catalog's credentials, which don't allow writing."""
    from mirror_assets.config.rules import written_tables  # it loads all settings

    for _, settings, source in written_tables(document):
        catalog = ("catalogs", str(document.get(*source, "catalog")))
        is_stores = document.get(*catalog, "credentials") == CatalogCredentials.STORES.value
        if document.get(*catalog, "type") != CatalogType.UNITY.value or is_stores:
            continue
        for place in (("defaults",), settings):
            if document.get(*place, "maintenance"):
                yield (*place, "maintenance"), _READ_ONLY
