"""Sizes in bytes as people write them: `16GiB`, `1.5 GB`, `1048576`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from mirror_assets.config.document import Origin
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
_BINARY = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS = {"": 1} | {unit.lower(): factor for unit, factor in (_BINARY | _DECIMAL).items()}


def parse_size(text: str) -> int:
    """Bytes written as a number and a unit. Raises ValueError for anything else, or for a fraction of a byte."""
    match = _SIZE.fullmatch(text.strip().replace("_", "").lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"expected a size like 16GiB (units: {', '.join(_BINARY | _DECIMAL)}), got {text!r}")
    size = Decimal(match[1]) * _UNITS[match[2]]
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def size_text(size: int) -> str:
    """`size` bytes in the largest binary unit that loses nothing; `parse_size` gives `size` back."""
    unit, factor = max(((unit, factor) for unit, factor in _BINARY.items() if size % factor == 0), key=lambda of: of[1])
    return f"{size // factor}{unit}" if size else "0B"


# A password before the host, or what signs a request in Azure, S3 and Google's storage.
_CREDENTIALS = re.compile(r"://[^/?#@]*:[^/?#@]*@|[?&](sig|x-amz-signature|x-goog-signature)=", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class Changes(str, Enum):
    """How changes of a table are found."""

    FEED = "feed"
    ROW_TRACKING = "row_tracking"
    APPEND_ONLY = "append_only"


class OnBreak(str, Enum):
    """What happens when the source can't be followed any more."""

    REBUILD = "rebuild"
    HOLD = "hold"


class OnDropColumn(str, Enum):
    """What happens when a mirrored column is dropped."""

    KEEP = "keep"
    REBUILD = "rebuild"


class History(str, Enum):
    """Whether the change feed is kept for ever, and how."""

    OFF = "false"
    SLICES = "slices"
    STREAM = "stream"


class Compression(str, Enum):
    """Compression of landing files."""

    NONE = "none"
    SNAPPY = "snappy"
    GZIP = "gzip"
    ZSTD = "zstd"


_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


def is_uri(text: str) -> bool:
    """Whether a source or folder is written as a URI, not as a path on this machine."""
    return bool(_SCHEME.match(text))


def _origin(info: ValidationInfo) -> Origin:
    return info.context if isinstance(info.context, Origin) else Origin()


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")  # noqa: TRY004 pydantic wants ValueError
    return value


def _history(value: object) -> object:
    if value is True or not isinstance(value, bool | str):
        shown = "nothing" if value is None else str(value).lower()
        raise ValueError(f"expected false, 'slices' or 'stream', got {shown}")
    return History.OFF if value is False else value


def _bytes(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else _no_bool(value)


def _folder(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str) and is_uri(value):
        raise ValueError(f"expected a folder on this machine, got {value!r}; other places are not built yet")
    return _path(value, info)


def _local_file(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str) and is_uri(value):
        raise ValueError(f"expected a file on this machine, got {value!r}")
    return _path(value, info)


def _path(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str | Path) or (isinstance(value, str) and is_uri(value)):
        return value
    if not str(value).strip():
        raise ValueError("expected a path, got an empty text")
    if str(value).startswith("~"):
        raise ValueError(f"`~` is not replaced in {str(value)!r}; write ${{HOME}}")
    if _ESCAPE.search(str(value)):
        raise ValueError(f"{str(value)!r} has a percent sign and two digits, which readers of Delta tables decode")
    return str(_origin(info).absolute(value))


def _source(value: object, info: ValidationInfo) -> object:
    if isinstance(value, dict):
        raise ValueError("a table can't be looked up by its catalog name yet; give the path or URI of its folder")  # noqa: TRY004 pydantic wants ValueError
    if isinstance(value, str) and _CREDENTIALS.search(value):
        raise ValueError(
            "credentials in a URI end up in Dagster's storage; give them to Spark and deltalake apart from it"
        )
    return _path(local_source(value), info)


def local_source(value: object) -> object:
    """A `file:` URI as the path that it names, so that every rule for paths holds for it too."""
    if not isinstance(value, str) or not value.lower().startswith("file:"):
        return value
    parts = urlsplit(value)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{value!r} names another machine; write file:///path or the path itself")
    return unquote(parts.path)


def _distinct(keys: Sequence[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for key in keys:
        if key.lower() in seen:
            raise ValueError(f"{key!r} and {seen[key.lower()]!r} are the same column")
        seen[key.lower()] = key
    return tuple(keys)


def _table_key(text: str) -> str:
    try:
        TableName.parse(text)
    except NameRefused as error:
        raise ValueError(error.what) from None
    if _ESCAPE.search(text):
        raise ValueError(f"{text!r} has a percent sign and two digits, which readers of Delta tables decode")
    return text


def _spark_value(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _spark_name(name: str) -> str:
    if not name.startswith("spark."):
        raise ValueError("names of Spark settings start with `spark.`; Spark ignores others")
    return name


Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=1)]
Bytes = Annotated[int, BeforeValidator(_bytes), Field(ge=1)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, allow_inf_nan=False)]
Percent = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, lt=100, allow_inf_nan=False)]
KeepHistory = Annotated[History, BeforeValidator(_history)]
Text = Annotated[str, Field(min_length=1)]
Folder = Annotated[Path, BeforeValidator(_folder)]
LocalFile = Annotated[Path, BeforeValidator(_local_file)]
TableSource = Annotated[str, BeforeValidator(_source)]
Keys = Annotated[tuple[Text, ...], AfterValidator(_distinct)]
Columns = Annotated[tuple[Text, ...], Field(min_length=1), AfterValidator(_distinct)]
TableKey = Annotated[str, AfterValidator(_table_key)]
SparkName = Annotated[str, AfterValidator(_spark_name)]
SparkValue = Annotated[str, BeforeValidator(_spark_value)]
