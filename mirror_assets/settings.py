"""Sections of mirror.yaml and the types of their values: how each is validated and converted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, create_model
from typing_extensions import Self

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_FACTORS = {"": 1} | {unit.lower(): factor for unit, factor in _UNITS.items()}


@dataclass(frozen=True)
class Origin:
    """The file of a configuration, and the line of each setting by its dotted path; the root's path is empty."""

    file: Path = Path("mirror.yaml")
    lines: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, path: str) -> int | None:
        """Return the line of a setting, or of the nearest setting above it, or None."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path.rpartition(".")[0]
        return None

    def place(self, path: str) -> str:
        """Return `mirror.yaml:12`, or the file alone without a known line."""
        line = self.line_of(path)
        return f"{self.file}:{line}" if line else str(self.file)

    def absolute(self, path: str | Path) -> Path:
        """Return the path; a relative one starts at the file's folder."""
        return Path(os.path.normpath(self.file.absolute().parent / path))


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


def _on_disk(what: str) -> BeforeValidator:
    """Return a validator for paths on this machine."""

    def check(value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and is_uri(value):
            raise ValueError(f"expected a {what} on this machine, got {value!r}")
        return local_path(value, info)

    return BeforeValidator(check)


def local_path(value: object, info: ValidationInfo) -> object:
    """Return the path as an absolute one; a relative path starts at the file's folder."""
    if not isinstance(value, str | Path) or (isinstance(value, str) and is_uri(value)):
        return value
    if not str(value).strip():
        raise ValueError("expected a path, got an empty text")
    if str(value).startswith("~"):
        raise ValueError(f"`~` is not expanded in {str(value)!r}; write ${{HOME}}")
    without_escape(str(value))
    origin = info.context if isinstance(info.context, Origin) else Origin()
    return str(origin.absolute(value))


def without_escape(text: str) -> str:
    """Return the text. Raises ValueError for one that readers of Delta tables would decode."""
    if ESCAPE.search(text):
        raise ValueError(f"{text!r} has a percent sign and two digits, which readers of Delta tables decode")
    return text


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")  # noqa: TRY004 pydantic wants ValueError
    return value


def _bytes(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else _number(value)


Count = Annotated[int, BeforeValidator(_number), Field(ge=1)]
Bytes = Annotated[int, BeforeValidator(_bytes), Field(ge=1)]
Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
_VARIABLE = "the name of an environment variable, and not the secret itself"
Variable = Annotated[Text, matching("[A-Za-z_][A-Za-z0-9_]*", _VARIABLE, is_secret=True)]
Folder = Annotated[Path, _on_disk("folder")]
LocalFile = Annotated[Path, _on_disk("file")]
