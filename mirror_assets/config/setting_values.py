"""The choices and names of a table's settings: how each is validated and converted."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName
from mirror_assets.settings import Text, matching, without_escape


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


class Compression(str, Enum):
    """Compression of landing files."""

    NONE = "none"
    SNAPPY = "snappy"
    GZIP = "gzip"
    ZSTD = "zstd"


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
