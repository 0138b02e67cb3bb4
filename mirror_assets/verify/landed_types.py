"""The types of columns a second time, from docs/encoding.md: an error in the encoder's table must differ from this."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True)
class LandedType:
    """How a type lands: its landing type, the one that Arrow reads (no decimal's), and whether JSON has it unquoted."""

    landing: str
    arrow: pa.DataType | None = None
    is_bare: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it has NaN, infinities and two zeros."""
        return self.arrow is not None and pa.types.is_floating(self.arrow)


# By PySpark's `typeName`, which is Delta's name.
LANDED_TYPES = {
    "byte": LandedType("tinyint", pa.int8(), is_bare=True),
    "short": LandedType("smallint", pa.int16(), is_bare=True),
    "integer": LandedType("int", pa.int32(), is_bare=True),
    "long": LandedType("bigint", pa.int64(), is_bare=True),
    "float": LandedType("float", pa.float32(), is_bare=True),
    "double": LandedType("double", pa.float64(), is_bare=True),
    "decimal": LandedType("decimal", is_bare=True),
    "boolean": LandedType("boolean", pa.bool_(), is_bare=True),
    "binary": LandedType("binary", pa.binary()),
    "date": LandedType("date", pa.date32()),
    "timestamp": LandedType("timestamp", pa.timestamp("us", tz="UTC")),
    "timestamp_ntz": LandedType("timestamp_ntz", pa.timestamp("us")),
    **dict.fromkeys(("string", "struct", "array", "map", "variant"), LandedType("string", pa.string())),
}
_UNLANDED = LandedType("")


def landed_as(type_name: str) -> LandedType:
    """Return how a type of PySpark's with this name lands."""
    return LANDED_TYPES.get(type_name, _UNLANDED)


def arrow_type(landing_type: str) -> pa.DataType | None:
    """Return the Arrow type that pyarrow reads for a landing type in Spark's spelling; None if the type can't land."""
    decimal = _DECIMAL.fullmatch(landing_type)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return next((one.arrow for one in LANDED_TYPES.values() if one.landing == landing_type), None)
