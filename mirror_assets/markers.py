"""What a landed row says of itself: the marker column, its values, and how nested values are written as text."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

ROW_MARKER: Final = "__rowMarker__"
# The key column of a mirror whose source has no key: the id that row tracking gives each row.
ROW_ID: Final = "_row_id"

# Nested values land as JSON text (seed `000`). NULL fields are left out, so that a field added later changes no text
# of unchanged rows; NULL entries of maps and arrays stay. Times keep their microseconds, and their text does
# not follow the session's zone.
JSON_OPTIONS: Final = {
    "ignoreNullFields": "true",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}

# The text of a column of type `timestamp_ntz` that lands as text.
NTZ_TEXT: Final = "yyyy-MM-dd HH:mm:ss.SSSSSS"


class Marker(IntEnum):
    """Values of `__rowMarker__` (reference `landing-zone` §4.15)."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 4
