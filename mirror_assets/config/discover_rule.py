"""A rule that finds tables: where, how they are called, which keys they have, and which of them are left out."""

from __future__ import annotations

import string
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticKnownError

from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.setting_values import Keys, Section, Text
from mirror_assets.config.table_settings import TableDefaults

DEFAULT_KEYS = "default"
_PLACEHOLDERS = ("folder", "table")


class NewTables(str, Enum):
    """What happens to a table that is found."""

    MIRROR = "mirror"
    HOLD = "hold"


def _folders(pattern: str) -> str:
    names = [name for name in pattern.split("/") if name]
    if not names or pattern.startswith("/") or any(name in (".", "..", "**") for name in names):
        raise ValueError(f"expected folders below the store's root, such as */ or sales/*/, got {pattern!r}")
    return "/".join(names)


def _end_of_path(pattern: str) -> str:
    if pattern.startswith("/") or not pattern.strip("/"):
        raise ValueError(f"expected the end of a path, such as _tmp* or staging/*, got {pattern!r}")
    return pattern


def _template(text: str) -> str:
    try:
        fields = [name for _, name, form, conversion in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ValueError(f"{text!r} can't be read: {error}") from None
    for name in fields:
        if name not in _PLACEHOLDERS:
            raise ValueError(f"there is no {{{name}}}{did_you_mean(name, _PLACEHOLDERS)}")
    return text


def _schemas(pattern: str) -> str:
    if any(character in pattern for character in "./\\") or not pattern.strip():
        raise ValueError(f"expected a schema of the catalog, or a pattern of such as sales_*, got {pattern!r}")
    return pattern


FolderPattern = Annotated[Text, AfterValidator(_folders)]
EndPattern = Annotated[Text, AfterValidator(_end_of_path)]
SchemaPattern = Annotated[Text, AfterValidator(_schemas)]
Template = Annotated[Text, AfterValidator(_template)]


class FromStore(Section):
    """Folders of a store."""

    store: Text = Field(description="The store's name in `stores`.")
    path: FolderPattern = Field(default="*", description="Pattern of the table folders below the store's root.")

    def source(self, path: str) -> Mapping[str, str]:
        """Return the setting `source` of the table at a path below the root."""
        return {"store": self.store, "path": path}

    @property
    def usual_schema(self) -> str | None:
        """The tables' schema in the mirror, if the rule names none."""
        return None


class FromCatalog(Section):
    """Tables of a Unity Catalog, by their schemas there."""

    catalog: Text = Field(description="The catalog's name in `catalogs`.")
    schema_name: SchemaPattern = Field(
        default="*", alias="schema", description="Schema, or pattern of schemas, that have the tables."
    )

    def source(self, path: str) -> Mapping[str, str]:
        """Return the setting `source` of the table at `<schema>/<table>`."""
        return {"catalog": self.catalog, "table": path.replace("/", ".", 1)}

    @property
    def usual_schema(self) -> str | None:
        """The tables' schema in the mirror, if the rule names none: the one that they have."""
        return "{folder}"


def _place(value: object, info: ValidationInfo) -> FromStore | FromCatalog:
    """Return the place of the kind that is named; mistakes are those of that kind."""
    if isinstance(value, FromStore | FromCatalog):
        return value
    if not isinstance(value, dict):
        raise PydanticKnownError("dict_type")
    if "catalog" in value and "store" in value:
        raise ValueError("expected {store, path} or {catalog, schema}, not both")
    kind = FromCatalog if "catalog" in value else FromStore
    return kind.model_validate(value, context=info.context)


class DiscoverRule(Section):
    """Tables that are found, and mirrored with the same settings."""

    place: Annotated[FromStore | FromCatalog, BeforeValidator(_place)] = Field(
        alias="from", description="Where the tables are: {store, path} or {catalog, schema}."
    )
    schema_name: Template | None = Field(
        default=None, alias="schema", description="Their schema in the mirror; {folder} is the folder that holds them."
    )
    exclude: tuple[EndPattern, ...] = Field(default=(), description="Ends of paths of folders that are left out.")
    keys: dict[Text, Keys] = Field(
        default_factory=dict, description="Columns that identify a row, by a table's name, and by `default`."
    )
    new_tables: NewTables = Field(default=NewTables.MIRROR, description="Mirror what is found, or wait for approval.")
    approved: tuple[EndPattern, ...] = Field(default=(), description="Ends of paths of tables that need not wait.")
    settings: TableDefaults = Field(
        default_factory=TableDefaults, description="Settings of these tables, over the defaults."
    )

    def name(self, path: PurePosixPath) -> str:
        """Return the name in the mirror of the table at a path that begins with the root's own name."""
        schema = self.schema_name or self.place.usual_schema
        if schema is None:
            return path.name
        return f"{schema.format(folder=path.parent.name, table=path.name)}.{path.name}"

    def excludes(self, path: PurePosixPath) -> bool:
        """Return whether the folder is left out."""
        return any(path.match(pattern) for pattern in self.exclude)

    def holds(self, path: PurePosixPath) -> bool:
        """Return whether the table waits for approval."""
        return self.new_tables is NewTables.HOLD and not any(path.match(pattern) for pattern in self.approved)

    def keys_of(self, name: str) -> Keys | None:
        """Return the keys of a table by its name in the mirror, or else by its folder's; None: those of `defaults`."""
        for known in (name, name.rpartition(".")[2], DEFAULT_KEYS):
            if known in self.keys:
                return self.keys[known]
        return None
