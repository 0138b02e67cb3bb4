"""The types of a table's settings: choices, names, columns and start; how each is validated and converted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from mirror_assets.column_types import LANDING_TYPES, MOST_DIGITS, decimal_digits
from mirror_assets.config.errors import did_you_mean
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName
from mirror_assets.settings import Section, Text, matching, without_escape
from mirror_assets.source.ranges import TimePoint, VersionPoint, parse_time


class Changes(str, Enum):
    """How the changes of a table are read."""

    FEED = "feed"
    ROW_TRACKING = "row_tracking"
    FILES = "files"
    APPEND_ONLY = "append_only"

    @property
    def compares_versions(self) -> bool:
        """Whether changes are read from the files that differ between two versions."""
        return self in (Changes.ROW_TRACKING, Changes.FILES)

    @property
    def needs_keys(self) -> bool:
        """Whether rows can only be paired by key columns."""
        return self in (Changes.FEED, Changes.FILES)


class OnBreak(str, Enum):
    """The action at a commit that can't be followed."""

    REBUILD = "rebuild"
    REPAIR = "repair"
    HOLD = "hold"


class OnDropColumn(str, Enum):
    """The action when the source drops a mirrored column."""

    KEEP = "keep"
    REBUILD = "rebuild"


def distinct_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names. Raises ValueError for two that are the same column, because Spark ignores case."""
    seen = dict[str, str]()
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"{name!r} and {seen[name.lower()]!r} are the same column")
        seen[name.lower()] = name
    return tuple(names)


def _table_key(text: str) -> str:
    try:
        TableName.parse(text)
    except NameRefused as error:
        raise ValueError(error.what) from None
    return without_escape(text)


def _schema_name(text: str) -> str:
    if "." in text:
        raise ValueError(f"expected a schema's name, which can't have a dot, got {text!r}")
    return _table_key(text)


def _text(value: object) -> object:
    """Return a number or a boolean as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Keys = Annotated[tuple[Text, ...], AfterValidator(distinct_columns)]
# Owners and tags that Dagster accepts: definitions with others would not load.
_OWNER = r"team:\S.*|[A-Za-z0-9_][A-Za-z0-9._%+-]*@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}"
Owners = tuple[Annotated[Text, matching(_OWNER, "an owner, `team:NAME` or an e-mail address")], ...]
_TAG_NAME = "a tag's name: 1 to 63 letters, digits, `_`, `-` and `.`, with or without a `prefix/` that is not Dagster's"
_TAG_VALUE = "a tag's value: up to 63 letters, digits, `_`, `-` and `.`"
Tags = dict[
    Annotated[str, matching(r"(?!dagster/)([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}", _TAG_NAME)],
    Annotated[str, matching("[A-Za-z0-9_.-]{0,63}", _TAG_VALUE), BeforeValidator(_text)],
]
TableKey = Annotated[str, AfterValidator(_table_key)]
SchemaName = Annotated[str, AfterValidator(_schema_name)]
SparkName = Annotated[str, matching(r"spark\..*", "a name that starts with `spark.`, because Spark ignores others")]
_PYTHON = "a name in Python, `module:name`"
PythonName = Annotated[str, matching(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", _PYTHON)]
SparkValue = Annotated[str, BeforeValidator(_text)]


def start_among(named: type[Enum]) -> BeforeValidator:
    """Return a validator for one of these names, a version or a time."""

    def check(value: object) -> Enum | VersionPoint | TimePoint:
        if isinstance(value, named | VersionPoint | TimePoint):
            return value
        if isinstance(value, str) and value in [one.value for one in named]:
            return named(value)
        value = dict(value) if isinstance(value, tuple) else value
        (name, point), *more = list(value.items()) if isinstance(value, dict) and value else [("", None)]
        if name == "version" and isinstance(point, int) and not isinstance(point, bool) and point >= 0 and not more:
            return VersionPoint(point)
        if name == "timestamp" and isinstance(point, str) and not more:
            return parse_time(point)
        shown = "nothing" if value is None else repr(value)
        if isinstance(value, dict):
            shown = f"{{{', '.join(f'{name}: {below}' for name, below in value.items())}}}"
        names = ", ".join(repr(start.value) for start in named)
        raise ValueError(f"expected {names}, {{version: N}} or {{timestamp: yyyy-MM-dd HH:mm:ss}}, got {shown}")

    return BeforeValidator(check)


def dump_start(start: Enum | VersionPoint | TimePoint) -> Enum | tuple[tuple[str, int | str]]:
    """Return no mapping: a table's own start replaces that of the defaults, and mappings would be merged."""
    if isinstance(start, VersionPoint):
        return (("version", start.version),)
    return (("timestamp", str(start)),) if isinstance(start, TimePoint) else start


def _landing_type(text: str) -> str:
    kind = re.sub(r"\s+", "", text).lower()
    if kind in LANDING_TYPES:
        return kind
    precision, scale = decimal_digits(kind) or (0, 0)
    if not (1 <= precision <= MOST_DIGITS and scale <= precision):
        raise ValueError(f"{text!r} can't land; it must be one of {', '.join(LANDING_TYPES)}, decimal(p,s)")
    return f"decimal({precision},{scale})"  # as Spark writes it: 05 is 5


LandingType = Annotated[str, AfterValidator(_landing_type)]


class ComputedColumn(Section):
    """A column whose values are computed from other columns of the same row: a mask, or a new column."""

    sql: Text = Field(description="Spark SQL expression over the source's columns.")
    type: LandingType | None = Field(
        default=None, description="Type in the mirror; null: that of the source's column with this name."
    )


def _from_sql(value: object) -> object:
    """Accept the expression alone in place of the mapping."""
    if isinstance(value, str):
        return {"sql": value}
    known = ComputedColumn.model_fields
    if isinstance(value, dict) and (unknown := [name for name in value if name not in known]):
        raise ValueError(f"unknown setting {unknown[0]!r}{did_you_mean(str(unknown[0]), known)}")
    return value


_Computed = dict[Text, Annotated[ComputedColumn, BeforeValidator(_from_sql)]]
_Entry: TypeAlias = Annotated[
    Annotated[Text, Tag("[name]")] | Annotated[_Computed, Field(min_length=1), Tag("[computed]")],
    Discriminator(lambda entry: "[computed]" if isinstance(entry, dict) else "[name]"),
]
_Listed: TypeAlias = tuple[_Entry, ...]
ColumnChoice: TypeAlias = _Computed | tuple[str | _Computed, ...]
"""Computed columns by name, which land with all columns of the source; or a list of the only columns that land."""


def listed_in(choice: ColumnChoice | None) -> tuple[str, ...] | None:
    """Return the names of the source's columns in a list; None if all columns land."""
    return tuple(entry for entry in choice if isinstance(entry, str)) if isinstance(choice, tuple) else None


def _distinct(choice: ColumnChoice) -> ColumnChoice:
    if not choice:
        raise ValueError("it must not be empty")
    distinct_columns([*(listed_in(choice) or ()), *(name for name, _ in computed_in(choice))])
    return choice


def computed_in(choice: ColumnChoice) -> Iterator[tuple[str, ComputedColumn]]:
    """Yield the name and the settings of each computed column."""
    for entry in [choice] if isinstance(choice, dict) else choice:
        yield from entry.items() if isinstance(entry, dict) else ()


Columns = Annotated[
    Annotated[_Computed, Tag("[computed]")] | Annotated[_Listed, Tag("[list]")],
    Discriminator(lambda choice: "[computed]" if isinstance(choice, dict) else "[list]"),
    AfterValidator(_distinct),
]
