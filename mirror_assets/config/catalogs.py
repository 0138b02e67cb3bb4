"""The catalogs of source tables, and the addresses of tables by their names there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from mirror_assets.config.setting_values import Section, Text, Variable
from mirror_assets.storage.lake.unity_answers import API

_SCHEME = "catalog://"
# Catalogs allow more characters in names, but none of these.
_NAME = r"[^\s./`\\?#%]+"
_TABLE = re.compile(rf"{_NAME}(\.{_NAME})+")
_SPARK_DEFAULT = "spark_catalog"
_HERE = ("localhost", "127.0.0.1", "::1")


class CatalogType(str, Enum):
    """The kinds of catalogs: a Unity Catalog through its REST API, or any catalog of the Spark session."""

    UNITY = "unity"
    SPARK = "spark"


class CatalogCredentials(str, Enum):
    """The identity that reads the tables: keys issued by the catalog, or the identity of each table's store."""

    VENDED = "vended"
    STORES = "stores"


def _server(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise ValueError(f"expected the address of a Unity Catalog, such as https://host{API}, without credentials")
    path = parts.path.rstrip("/").removesuffix(API)
    return f"{parts.scheme}://{parts.netloc}{path}"


class CatalogConfig(Section):
    """A catalog: its place, and the identity that reads its tables. A token is in the environment only."""

    type: CatalogType = Field(description="unity: through its REST API; spark: any catalog of the Spark session.")
    url: Annotated[str | None, BeforeValidator(lambda value: value if value is None else _server(value))] = Field(
        default=None, description="unity: the server's address, with or without /api/2.1/unity-catalog."
    )
    name: Text | None = Field(
        default=None, description="The catalog's name on the server; null: its name here, for spark spark_catalog."
    )
    token_variable: Variable | None = Field(
        default=None, description="unity: environment variable with the token; null: no authentication."
    )
    credentials: CatalogCredentials | None = Field(
        default=None, description="Identity that reads the tables: vended (unity's default) or stores (spark's only)."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.type is CatalogType.UNITY) is (self.url is None):
            raise ValueError("`url` is a setting of `type: unity`, and required there")
        if self.type is CatalogType.SPARK and self.token_variable:
            raise ValueError("`token_variable` is not for `type: spark`: the session's settings have its identity")
        if self.type is CatalogType.SPARK and self.credentials is CatalogCredentials.VENDED:
            raise ValueError("a catalog of Spark issues no credentials here; set `stores`, or `type: unity`")
        url = urlsplit(self.url or "")
        if self.token_variable and url.scheme == "http" and url.hostname not in _HERE:
            raise ValueError("a token is sent over https only, unless the catalog is on this machine")
        return self

    @property
    def is_vending(self) -> bool:
        """Whether its tables are read with credentials that it issues."""
        return self.type is CatalogType.UNITY and self.credentials is not CatalogCredentials.STORES

    def known_as(self, label: str) -> str:
        """Return the catalog's name on its server; `label` is its name in mirror.yaml."""
        return self.name or (label if self.type is CatalogType.UNITY else _SPARK_DEFAULT)


def table_problem(catalog_type: object, table: object) -> str | None:
    """Return the mistake in a table's name in a catalog of this type, or None."""
    if not isinstance(table, str):
        return None  # reported where the setting is read
    if not _TABLE.fullmatch(table):
        return f"{table!r} can't be a table's name in a catalog; write <schema>.<table>"
    if catalog_type == CatalogType.UNITY.value and table.count(".") != 1:
        return f"{table!r} has more parts than <schema>.<table>; the catalog's own name is in `catalogs`"
    return None


@dataclass(frozen=True)
class CatalogTable:
    """A table by its name in a catalog, `<schema>.<table>`; `catalog` is the catalog's name in `catalogs`.

    As text, it is an address of this project's own; the catalog resolves the table's location.
    """

    catalog: str
    table: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.catalog}/{self.table}"

    @classmethod
    def parse(cls, text: str) -> CatalogTable | None:
        """Return the table of such an address, or None."""
        catalog, _, table = text.removeprefix(_SCHEME).partition("/")
        return cls(catalog, table) if text.startswith(_SCHEME) else None
