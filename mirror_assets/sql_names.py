"""Names of tables and columns in Spark SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return the name in backticks, so that dots, spaces and backticks are part of it."""
    return f"`{name.replace('`', '``')}`"


def table_at(uri: str) -> str:
    """Return the name of the table at an address: delta.`…`."""
    return f"delta.{quoted(uri)}"
