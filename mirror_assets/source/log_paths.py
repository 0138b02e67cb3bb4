"""Paths in a log, as paths in the table's folder or absolute URIs (Delta's protocol, "Add File and Remove File")."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category
from urllib.parse import quote, unquote

from mirror_assets.source.actions import Metadata

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_ABSOLUTE = re.compile(rf"/|{_URI.pattern}")
_ON_DISK = re.compile(r"(?:file:)?/+")
# What `java.net.URI` may write otherwise in a path: all but these of ASCII, and blanks and controls beyond it.
_QUOTED = re.compile(r"[^A-Za-z0-9_.!~*'(),;:$&+=/@-]")


@dataclass(frozen=True)
class TablePaths:
    """The paths of one table; `root` is its folder as an absolute URI with a slash behind it."""

    root: str

    @classmethod
    def of(cls, uri: str) -> TablePaths:
        """Those of the table at a URI or a path of this machine."""
        place = unquote(uri) if _URI.match(uri) else os.path.normpath(Path(uri).absolute())
        return cls(f"{_with_scheme(place).rstrip('/')}/")

    def decoded(self, path: str) -> str:
        """A path of the log, which is a URL-encoded one: relative when it lies in the table's folder."""
        plain = unquote(path)
        if not _ABSOLUTE.match(plain):
            return plain
        return _with_scheme(plain).removeprefix(self.root)


def is_absolute(path: str) -> bool:
    """Whether a decoded path lies outside of the table's folder."""
    return _ABSOLUTE.match(path) is not None


def as_listed(path: str) -> bool:
    """Whether a path of the log is spelled as Hadoop lists the file: Spark's VACUUM compares both, and decodes neither.

    delta-rs encodes what is beyond ASCII in the names of partition columns, and Hadoop doesn't. A path that begins with
    a slash is decoded when it gets its scheme.
    """
    return path.startswith("/") or "%" not in path or _QUOTED.sub(_quoted, unquote(path)) == path


def _quoted(found: re.Match[str]) -> str:
    character = found[0]
    is_left = character > "\x9f" and not category(character).startswith("Z")
    return character if is_left else quote(character)


def _with_scheme(path: str) -> str:
    """Local paths in one spelling: Hadoop writes `file:/a`, others `file:///a` or `/a`."""
    on_disk = _ON_DISK.match(path)
    return f"file:///{path[on_disk.end() :]}" if on_disk else path


_SHOWN = ("_delta_index", "_change_data")
_FORMATS = "delta.universalFormat.enabledFormats"


def is_hidden(path: str, metadata: Metadata) -> bool:
    """Whether a folder on the way to the file, or the file itself, has a name that Delta hides.

    Those begin with `_` or `.`, unless a partition column of that name does; Iceberg's metadata is hidden where the
    table is written for Iceberg, too.
    """
    shown = (*_SHOWN, *(f"{column}=" for column in metadata.partition_columns))
    has_iceberg = "iceberg" in metadata.configuration.get(_FORMATS, "").lower()
    return any(_hides(name, shown) or (has_iceberg and name == "metadata") for name in path.split("/"))


def _hides(name: str, shown: tuple[str, ...]) -> bool:
    return name.startswith((".", "_")) and not name.startswith(shown)
