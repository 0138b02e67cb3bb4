"""The types of single settings: how a value of mirror.yaml is validated and converted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, create_model
from typing_extensions import Self

from mirror_assets.config.document import Origin
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName
from mirror_assets.storage.lake.lake_address import LakeAddress

# A password before the host, or a signed request of Azure Storage, S3 or Google Cloud Storage.
_CREDENTIALS = re.compile(r"://[^/?#@]*:[^/?#@]*@|[?&](sig|x-amz-signature|x-goog-signature)=", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_FACTORS = {"": 1} | {unit.lower(): factor for unit, factor in _UNITS.items()}


class Section(BaseModel):
    """A mapping in mirror.yaml: unknown names in it are mistakes, and its values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, settings: Section) -> Self:
        """Return settings of the whole as those of one feature, which are among them."""
        if not isinstance(settings, cls):
            raise TypeError(f"{type(settings).__name__} has no settings of {cls.__name__}")
        return settings


def with_settings(core: type[Section], of_features: Sequence[type[Section] | None]) -> type[Section]:
    """Return the section with the settings of features that have any."""
    return create_model(core.__name__, __base__=(*filter(None, of_features), core))


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


def is_uri(text: str) -> bool:
    """Return whether a source or folder is written as a URI, not as a path on this machine."""
    return bool(_SCHEME.match(text))


def local_source(value: object) -> object:
    """Turn a `file:` URI into its path, so that every rule for paths applies to it; return other values unchanged.

    Raises ValueError for a `file:` URI of another machine.
    """
    if not isinstance(value, str) or not value.lower().startswith("file:"):
        return value
    parts = urlsplit(value)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{value!r} names another machine; write file:///path or the path itself")
    return unquote(parts.path)


def parse_size(text: str) -> int:
    """Return the bytes of a size such as `16GiB`, `1.5 GB` or `1048576`.

    Raises ValueError for any other text, and for a fraction of a byte, which pydantic's ByteSize would cut off.
    """
    match = _SIZE.fullmatch(text.strip().replace("_", "").lower())
    if match is None or match[2] not in _FACTORS:
        raise ValueError(f"expected a size like 16GiB (units: {', '.join(_UNITS)}), got {text!r}")
    size = Decimal(match[1]) * _FACTORS[match[2]]
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def matching(pattern: str, expected: str, *, is_secret: bool = False) -> BeforeValidator:
    """Return a validator for texts that match; with `is_secret`, its message does not repeat the text."""

    def check(value: object) -> object:
        if isinstance(value, str) and re.fullmatch(pattern, value) is None:
            raise ValueError(f"expected {expected}" if is_secret else f"expected {expected}, got {value[:80]!r}")
        return value

    return BeforeValidator(check)


def address_of(value: object, info: ValidationInfo) -> object:
    """Return the absolute path of a local path, and a store's address in the spelling that both readers take.

    Raises ValueError for anything else. Databricks' own addresses are unchanged: reading them reports the next step.
    """
    if isinstance(value, str) and _CREDENTIALS.search(value):
        raise ValueError(
            "credentials in a URI end up in Dagster's storage; remove them, and set a `credential` in `stores`"
        )
    value = local_source(value)
    if isinstance(value, str) and is_uri(value) and not value.lower().startswith("dbfs:"):
        return LakeAddress.parse(value).uri
    return _path(value, info)


def _local(what: str) -> BeforeValidator:
    """Return a validator for paths on this machine."""

    def check(value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and is_uri(value):
            raise ValueError(f"expected a {what} on this machine, got {value!r}")
        return _path(value, info)

    return BeforeValidator(check)


def _path(value: object, info: ValidationInfo) -> object:
    """Return the path as an absolute one; a relative path starts at the file's folder."""
    if not isinstance(value, str | Path) or (isinstance(value, str) and is_uri(value)):
        return value
    if not str(value).strip():
        raise ValueError("expected a path, got an empty text")
    if str(value).startswith("~"):
        raise ValueError(f"`~` is not expanded in {str(value)!r}; write ${{HOME}}")
    _without_escape(str(value))
    origin = info.context if isinstance(info.context, Origin) else Origin()
    return str(origin.absolute(value))


def _without_escape(text: str) -> str:
    if ESCAPE.search(text):
        raise ValueError(f"{text!r} has a percent sign and two digits, which readers of Delta tables decode")
    return text


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")  # noqa: TRY004 pydantic wants ValueError
    return value


def _bytes(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else _number(value)


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
    return _without_escape(text)


def _schema_name(text: str) -> str:
    if "." in text:
        raise ValueError(f"expected a schema's name, which can't have a dot, got {text!r}")
    return _table_key(text)


def _text(value: object) -> object:
    """Return a number or a boolean as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Count = Annotated[int, BeforeValidator(_number), Field(ge=1)]
Bytes = Annotated[int, BeforeValidator(_bytes), Field(ge=1)]
Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
_VARIABLE = "the name of an environment variable, and not the secret itself"
Variable = Annotated[Text, matching("[A-Za-z_][A-Za-z0-9_]*", _VARIABLE, is_secret=True)]
Folder = Annotated[Path, _local("folder")]
LocalFile = Annotated[Path, _local("file")]
Address = Annotated[str, BeforeValidator(address_of)]
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
