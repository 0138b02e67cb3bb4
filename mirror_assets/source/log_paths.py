"""Paths in a log, as paths in the table's folder or absolute URIs (Delta's protocol, "Add File and Remove File")."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category
from urllib.parse import quote, unquote

from mirror_assets.source.actions import Metadata

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ABSOLUTE = re.compile(rf"/|{_URI.pattern}")
_ON_DISK = re.compile(r"(?:file:)?/+")
_SEGMENTS = re.compile(r"(?:^|/)\.{0,2}/")
# `java.net.URI` may encode these characters of a path: all of ASCII but the listed ones.
_QUOTED = re.compile(r"[^A-Za-z0-9_.!~*'(),;:$&+=/@-]")


@dataclass(frozen=True)
class TablePaths:
    """The paths of one table; `root` is its folder as an absolute URI that ends with a slash."""

    root: str

    @classmethod
    def of(cls, uri: str) -> TablePaths:
        """Return the paths of the table at a URI or a path of this machine."""
        place = unquote(uri) if _URI.match(uri) else os.path.normpath(Path(uri).absolute())
        return cls(f"{_with_scheme(place).rstrip('/')}/")

    def decoded(self, path: str) -> str:
        """Return a path of the log without its URL encoding: relative if it is in the table's folder, else a URI."""
        plain = unquote(spelled(path))
        if not _ABSOLUTE.match(plain):
            return plain
        return _with_scheme(plain).removeprefix(self.root)

    def named(self, path: str) -> tuple[str, str]:
        """Return a path of the log decoded, and in its spelling if that is another text, else an empty one."""
        decoded, spelling = self.decoded(path), spelled(path)
        return decoded, "" if spelling == decoded else spelling


def spelled(path: str) -> str:
    """Return a path of the log in the spelling by which actions name the same file.

    As in Delta's readers, it is encoded and absolute or relative as the writer chose, without `.` and empty segments.
    """
    if _ABSOLUTE.match(path):
        return _with_scheme(path)
    return posixpath.normpath(path) if _SEGMENTS.search(path) else path


def is_absolute(path: str) -> bool:
    """Whether a decoded path is outside of the table's folder."""
    return _ABSOLUTE.match(path) is not None


def has_scheme(uri: str) -> bool:
    """Whether it is a URI, not a path of this machine."""
    return _SCHEME.match(uri) is not None


def local_folder(uri: str) -> Path | None:
    """Return the folder at a path or a `file:` URI of this machine; None for another URI."""
    if not has_scheme(uri):
        return Path(uri).absolute()
    on_disk = _ON_DISK.match(uri)
    return Path("/", unquote(uri[on_disk.end() :])) if on_disk else None


def as_listed(path: str) -> bool:
    """Whether a path of the log is spelled as Hadoop lists the file: Spark's VACUUM compares both, and decodes neither.

    delta-rs encodes all characters beyond ASCII in the names of partition columns, and Hadoop only blanks and controls
    among them. A path that begins with a slash is decoded when it gets its scheme.
    """
    return path.startswith("/") or "%" not in path or java_encoded(unquote(path)) == path


def java_encoded(path: str) -> str:
    """Return a path as `java.net.URI` encodes it: letters outside of ASCII stay, blanks and controls don't."""

    def encoded(found: re.Match[str]) -> str:
        character = found[0]
        is_left = character > "\x9f" and not category(character).startswith("Z")
        return character if is_left else quote(character)

    return _QUOTED.sub(encoded, path)


def hadoop_path(uri: str, path: str) -> str:
    """Return the absolute path of a file of the table at `uri`, not encoded, as Hadoop spells it.

    Such as `file:/a/b c`, `s3a://bucket/a/b`. `path` is below the table's folder, or an absolute URI.
    """
    folder = local_folder(uri)
    place = path if is_absolute(path) else f"{uri.rstrip('/') if folder is None else folder}/{path}"
    on_disk = _ON_DISK.match(place)
    if on_disk:
        return f"file:{posixpath.normpath('/' + place[on_disk.end() :])}"
    scheme, _, rest = place.partition("://")
    authority, _, below = rest.partition("/")
    return f"{scheme}://{authority}{posixpath.normpath('/' + below)}"


def _with_scheme(path: str) -> str:
    """Return a local path in one spelling: Hadoop writes `file:/a`, others `file:///a` or `/a`."""
    on_disk = _ON_DISK.match(path)
    return f"file:///{path[on_disk.end() :]}" if on_disk else path


_SHOWN = ("_delta_index", "_change_data")
_FORMATS = "delta.universalFormat.enabledFormats"


def is_hidden(path: str, metadata: Metadata) -> bool:
    """Whether Delta hides the file, because its name or that of a folder on the way begins with `_` or `.`.

    Names of partition columns are excepted. Iceberg's metadata is hidden if the table is also written for Iceberg.
    """
    shown = (*_SHOWN, *(f"{column}=" for column in metadata.partition_columns))
    has_iceberg = "iceberg" in metadata.configuration.get(_FORMATS, "").lower()
    return any(
        (name.startswith((".", "_")) and not name.startswith(shown)) or (has_iceberg and name == "metadata")
        for name in path.split("/")
    )
