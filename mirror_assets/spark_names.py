"""How addresses, tables and columns are written for Spark."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

_OTHER_SCHEME = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:/", re.IGNORECASE)
_FILE = re.compile(r"file:/+", re.IGNORECASE)


def spark_path(address: str) -> str:
    """Return the address of a folder or file as Spark and Delta take it; convert an address once only.

    A path of this machine becomes absolute and gets the scheme `file`. Its characters stay as they are, because Hadoop
    takes the text of a path literally: `%20` is part of a name there, and a blank is written as a blank. A `file:` URI
    is decoded first. Addresses with another scheme are returned unchanged.
    """
    if _OTHER_SCHEME.match(address):
        return address
    uri = _FILE.match(address)
    path = f"/{unquote(address[uri.end() :])}" if uri else str(Path(address).absolute())
    return f"file://{path}"


def quoted(name: str) -> str:
    """Return the name in backticks, so that dots, spaces and backticks are part of it."""
    return f"`{name.replace('`', '``')}`"


def table_at(uri: str) -> str:
    """Return the name of the table at an address: delta.`…`."""
    return f"delta.{quoted(uri)}"
