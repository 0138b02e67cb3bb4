"""Which files of a table's folder VACUUM never lists (Delta's `DeltaTableUtils.isHiddenDirectory`)."""

from __future__ import annotations

from mirror_assets.delta.actions import Metadata

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
