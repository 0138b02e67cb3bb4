"""Names and values as Spark SQL writes them."""

from __future__ import annotations

_BARE = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})
_TYPED = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}
# 1.1 alone would be a decimal, which no float is equal to.
_CAST = frozenset({"float", "double", "binary"})


def table_at(uri: str) -> str:
    """The table at an address: delta.`…`."""
    return f"delta.{quoted(uri)}"


def quoted(name: str) -> str:
    """The name in backticks, so that dots, spaces and backticks stay part of it."""
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    """A string literal; a backslash begins an escape in Spark's."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal(value: str, column_type: str) -> str:
    """What a partition's folder is called after, as a literal of its column's type as Spark spells it."""
    if column_type in _BARE or column_type.startswith("decimal("):
        return value
    if column_type in _CAST:
        return f"CAST({text(value)} AS {column_type.upper()})"
    return f"{_TYPED[column_type]} {text(value)}" if column_type in _TYPED else text(value)
