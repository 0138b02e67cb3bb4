"""Which files of a table's folder no listing shows, VACUUM's included (Delta's `DeltaTableUtils.isHiddenDirectory`)."""

from __future__ import annotations

from collections.abc import Sequence

_NEVER = ("_delta_index", "_change_data")


def is_hidden(path: str, partition_columns: Sequence[str]) -> bool:
    """Whether a folder on the way to the file, or the file itself, has a name that Delta hides."""
    shown = (*_NEVER, *(f"{column}=" for column in partition_columns))
    return any(_hides(name, shown) for name in path.split("/"))


def _hides(name: str, shown: tuple[str, ...]) -> bool:
    return name == "metadata" or (name.startswith((".", "_")) and not name.startswith(shown))
