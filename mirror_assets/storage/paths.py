"""Relative paths of a store: checked once, so that no setting or manifest can point outside the root."""

from __future__ import annotations

import re

from mirror_assets.storage.errors import PathRefused

_UNWRITABLE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def checked(path: str) -> str:
    """`path` itself. Raises PathRefused for one that leaves the root or that no file system could hold."""
    if not path or path.startswith("/"):
        raise PathRefused(path, "it is empty or absolute")
    if _UNWRITABLE.search(path):
        raise PathRefused(path, "it holds a backslash, a control character or half a surrogate pair")
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise PathRefused(path, "it has an empty, `.` or `..` segment")
    return path
