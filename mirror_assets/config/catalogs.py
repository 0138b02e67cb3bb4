"""The catalogs that source tables are in, and the addresses of tables by their names there."""

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
    """The kinds of catalogs: a Unity Catalog by its REST interface, or any that the Spark session has."""

    UNITY = "unity"
    SPARK = "spark"


class CatalogCredentials(str, Enum):
    """Who reads the tables: the holder of what the catalog hands out, or the identity of each table's store."""

    VENDED = "vended"
    STORES = "stores"


def _server(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise ValueError(f"expected the address of a Unity Catalog, such as https://host{API}, without credentials")
    path = parts.path.rstrip("/").removesuffix(API)
    return f"{parts.scheme}://{parts.netloc}{path}"


class CatalogConfig(Section):
    """A catalog: where it is, and who reads the tables that it has. A token is in the environment only."""

    type: CatalogType = Field(description="unity: by its REST interface; spark: one of the Spark session's.")
    url: Annotated[str | None, BeforeValidator(lambda value: value if value is None else _server(value))] = Field(
        default=None, description="unity: the server's address, with or without /api/2.1/unity-catalog."
    )
    name: Text | None = Field(
        default=None, description="The catalog's name there; null: unity: its name here, spark: spark_catalog."
    )
    token_variable: Variable | None = Field(
        default=None, description="unity: the environment variable that has the token; null: no sign-in."
    )
    credentials: CatalogCredentials | None = Field(
        default=None, description="vended (unity's default) or stores (spark's only): who reads the tables."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.type is CatalogType.UNITY) is (self.url is None):
            raise ValueError("`url` goes with `type: unity`, which needs it")
        if self.type is CatalogType.SPARK and self.token_variable:
            raise ValueError(
                "`token_variable` is no setting of `type: spark`: the session's settings have its identity"
            )
        if self.type is CatalogType.SPARK and self.credentials is CatalogCredentials.VENDED:
            raise ValueError("a catalog of Spark hands out no credentials here; write `stores`, or `type: unity`")
        url = urlsplit(self.url or "")
        if self.token_variable and url.scheme == "http" and url.hostname not in _HERE:
            raise ValueError("a token is sent over https only, unless the catalog is on this machine")
        return self

    @property
    def is_vending(self) -> bool:
        """Whether its tables are read with credentials that it hands out."""
        return self.type is CatalogType.UNITY and self.credentials is not CatalogCredentials.STORES

    def known_as(self, label: str) -> str:
        """Return the name that the catalog has where it is; `label` is the one in mirror.yaml."""
        return self.name or (label if self.type is CatalogType.UNITY else _SPARK_DEFAULT)


def table_problem(catalog_type: object, table: object) -> str | None:
    """Return what is wrong with a table's name in a catalog of this type, or None."""
    if not isinstance(table, str):
        return None  # reported where the setting is read
    if not _TABLE.fullmatch(table):
        return f"{table!r} is no table's name in a catalog; write <schema>.<table>"
    if catalog_type == CatalogType.UNITY.value and table.count(".") != 1:
        return f"{table!r} has more parts than <schema>.<table>; the catalog's own name is in `catalogs`"
    return None


@dataclass(frozen=True)
class CatalogAddress:
    """A table by its name in a catalog of mirror.yaml, as an address of our own: it says nothing of where it lies."""

    catalog: str
    table: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.catalog}/{self.table}"

    @classmethod
    def parse(cls, text: str) -> CatalogAddress | None:
        """Return the table of such an address; None for any other."""
        catalog, _, table = text.removeprefix(_SCHEME).partition("/")
        return cls(catalog, table) if text.startswith(_SCHEME) else None
