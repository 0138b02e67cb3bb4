"""A discovery rule: where tables are, their names and keys, and which folders are excluded."""

from __future__ import annotations

import string
from enum import Enum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticKnownError

from mirror_assets.config.document import Document
from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.setting_values import Keys
from mirror_assets.config.table_settings import StorePath, TableDefaults
from mirror_assets.lakes.catalogs import CatalogTable
from mirror_assets.settings import Section, Text, matching

if TYPE_CHECKING:
    from mirror_assets.config.rules import Mistakes

DEFAULT_KEYS = "default"
_PLACEHOLDERS = ("folder", "table")


class NewTables(str, Enum):
    """The action for a discovered table."""

    MIRROR = "mirror"
    HOLD = "hold"


def _folders(pattern: str) -> str:
    names = [name for name in pattern.split("/") if name]
    if not names or pattern.startswith("/") or any(name in (".", "..", "**") for name in names):
        raise ValueError(f"expected folders below the store's root, such as */ or sales/*/, got {pattern!r}")
    return "/".join(names)


def _template(text: str) -> str:
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ValueError(f"{text!r} can't be read: {error}") from None
    for name in fields:
        if name not in _PLACEHOLDERS:
            raise ValueError(f"{{{name}}} is unknown{did_you_mean(name, _PLACEHOLDERS)}")
    return text


EndPattern = Annotated[Text, matching(r"(?s)(?!/).*[^/].*", "the end of a path, such as _tmp* or staging/*")]
SchemaPattern = Annotated[
    Text, matching(r"(?s)[^./\\]*[^./\\\s][^./\\]*", "a schema of the catalog, or a pattern such as sales_*")
]


class FromStore(Section):
    """Folders of a store."""

    store: Text = Field(description="Name of a store in `stores`.")
    path: Annotated[Text, AfterValidator(_folders)] = Field(
        default="*", description="Pattern of the table folders below the store's root."
    )

    def source(self, path: str) -> StorePath:
        """Return the table at a path below the root."""
        return StorePath(self.store, path)


class FromCatalog(Section):
    """Tables of a Unity Catalog."""

    catalog: Text = Field(description="Name of a Unity Catalog in `catalogs`.")
    schema_name: SchemaPattern = Field(default="*", alias="schema", description="Schema of the catalog, or a pattern.")

    def source(self, path: str) -> CatalogTable:
        """Return the table at `<schema>/<table>`."""
        return CatalogTable(self.catalog, path.replace("/", ".", 1))


def _place(value: object, info: ValidationInfo) -> FromStore | FromCatalog:
    """Validate the place as the kind that it names, so that mistakes are those of that kind alone."""
    if isinstance(value, FromStore | FromCatalog):
        return value
    if not isinstance(value, dict):
        raise PydanticKnownError("dict_type")
    if "catalog" in value and "store" in value:
        raise ValueError("expected {store, path} or {catalog, schema}, not both")
    kind = FromCatalog if "catalog" in value else FromStore
    return kind.model_validate(value, context=info.context)


class DiscoverRule(Section):
    """A rule that finds tables, and their common settings."""

    place: Annotated[FromStore | FromCatalog, BeforeValidator(_place)] = Field(
        alias="from", description="Where the tables are: {store, path} or {catalog, schema}."
    )
    schema_name: Annotated[Text, AfterValidator(_template)] | None = Field(
        default=None, alias="schema", description="Schema in the mirror; {folder} contains the table's folder."
    )
    exclude: tuple[EndPattern, ...] = Field(default=(), description="Folders to ignore, by the end of their path.")
    keys: dict[Text, Keys] = Field(
        default_factory=dict, description="Columns that identify a row, by table name; `default`: all others."
    )
    new_tables: NewTables = Field(default=NewTables.MIRROR, description="Mirror discovered tables, or hold them.")
    approved: tuple[EndPattern, ...] = Field(default=(), description="Approved tables, by the end of their path.")
    settings: TableDefaults = Field(
        default_factory=TableDefaults, description="Settings of these tables, over the defaults."
    )

    def name(self, path: PurePosixPath) -> str:
        """Return the name in the mirror of the table at a path that begins with the place's label."""
        schema = self.schema_name or ("{folder}" if isinstance(self.place, FromCatalog) else None)
        if schema is None:
            return path.name
        return f"{schema.format(folder=path.parent.name, table=path.name)}.{path.name}"

    def excludes(self, path: PurePosixPath) -> bool:
        """Return whether `exclude` matches the path."""
        return any(path.match(pattern) for pattern in self.exclude)

    def keys_of(self, name: str) -> Keys | None:
        """Return the keys of a table by its name in the mirror, or else its folder's; None for those of `defaults`."""
        for known in (name, name.rpartition(".")[2], DEFAULT_KEYS):
            if known in self.keys:
                return self.keys[known]
        return None


class DiscoverSettings(Section):
    """The rules that find tables."""

    discover: tuple[DiscoverRule, ...] = Field(default=(), description="Rules for table discovery.")


def useful_rules(document: Document) -> Mistakes:
    """Refuse settings of a rule of `discover` that have no effect."""
    from mirror_assets.config.rules import discover_rules  # it loads all settings

    for rule in discover_rules(document):
        if "keys" in document.names(*rule, "settings"):
            yield (*rule, "settings", "keys"), "set them as `keys: {default: […]}` of the rule"
        if document.get(*rule, "approved") and document.get(*rule, "new_tables") != NewTables.HOLD.value:
            yield (*rule, "approved"), "it needs `new_tables: hold`; otherwise no table waits for approval"
