"""The types of columns, one row for each. `verify` has a table of its own, which finds errors in this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

MOST_DIGITS = 38
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
# A text may be followed by its collation; `(` and `<` are followed by digits, a length or members.
_NAME = re.compile(r"\w+[(<]|string")
_NOT_EQUAL = "floating-point numbers have no exact equality"
_NOT_COMPARED = "nested values can't be compared in Fabric"
_COMPLEX = "is complex: store its members as columns, or as JSON text, or leave it out of the model"
# Delta has no GUIDs: writers store them as binary or text.
_BINARY = "is binary, as a GUID may be: store it as text, or leave it out of the model"


class Family(Enum):
    """Types that are treated alike."""

    WHOLE = "whole numbers"
    DECIMAL = "decimals"
    FLOAT = "floating-point numbers, which have NaN and two zeros"
    BOOLEAN = "booleans"
    TEXT = "texts"
    BINARY = "bytes"
    TIME = "dates, and times with a date"
    NESTED = "values with members"
    REFUSED = "values that a landing file can't hold"


class NtzLanding(str, Enum):
    """The form in which a `timestamp_ntz` column lands; the SQL endpoint leaves out columns that land as they are.

    UTC: a timestamp whose time in UTC is the column's. TEXT: `yyyy-MM-dd HH:mm:ss.SSSSSS`.
    """

    UTC = "utc"
    TEXT = "text"
    AS_IS = "as_is"

    def landed(self, spelling: str) -> str:
        """Return the landing type of a type in Spark's spelling: that of all others is itself."""
        by_form = {NtzLanding.UTC: "timestamp", NtzLanding.TEXT: "string", NtzLanding.AS_IS: NTZ}
        return by_form[self] if spelling == NTZ else spelling


NTZ = "timestamp_ntz"
LAND_AS_TEXT = (Family.TEXT, Family.NESTED)


@dataclass(frozen=True)
class ColumnType:
    """A type of columns. `name` is Spark's, with the `(` or `<` that follows it; `delta` is the log's, if it differs.

    `arrow`: the mirror's type, if the type lands as itself and has no digits. `literal`: a value in Spark SQL, from its
    text in the log. `why_no_key`: the reason why a key can't have it. `key_cost`: the higher it is, the less likely is
    the column a key; None for a type with too few values. `direct_lake`: the reason why Direct Lake can't load it; None
    if no document names the type.
    """

    name: str
    family: Family
    arrow: pa.DataType | None = None
    delta: str = ""
    literal: str = "'{}'"
    why_no_key: str = ""
    key_cost: float | None = 0.5
    direct_lake: str | None = ""


COLUMN_TYPES = (
    ColumnType("tinyint", Family.WHOLE, pa.int8(), "byte", literal="{}"),
    ColumnType("smallint", Family.WHOLE, pa.int16(), "short", literal="{}"),
    ColumnType("int", Family.WHOLE, pa.int32(), "integer", literal="{}"),
    ColumnType("bigint", Family.WHOLE, pa.int64(), "long", literal="{}"),
    # 1.1 alone would be a decimal, which no float is equal to.
    ColumnType("float", Family.FLOAT, pa.float32(), literal="CAST('{}' AS FLOAT)", why_no_key=_NOT_EQUAL),
    ColumnType("double", Family.FLOAT, pa.float64(), literal="CAST('{}' AS DOUBLE)", why_no_key=_NOT_EQUAL),
    ColumnType("boolean", Family.BOOLEAN, pa.bool_(), literal="{}", key_cost=None),
    ColumnType("string", Family.TEXT, pa.string(), key_cost=0.0),
    ColumnType("binary", Family.BINARY, pa.binary(), literal="CAST('{}' AS BINARY)", key_cost=2.0, direct_lake=_BINARY),
    ColumnType("date", Family.TIME, pa.date32(), literal="DATE '{}'"),
    ColumnType("timestamp", Family.TIME, pa.timestamp("us", tz="UTC"), literal="TIMESTAMP '{}'", key_cost=2.0),
    ColumnType(NTZ, Family.TIME, pa.timestamp("us"), literal="TIMESTAMP_NTZ '{}'", key_cost=2.0),
    ColumnType("decimal(", Family.DECIMAL, literal="{}", key_cost=4.0),
    ColumnType("char(", Family.TEXT, key_cost=0.0),
    ColumnType("varchar(", Family.TEXT, key_cost=0.0),
    ColumnType("struct<", Family.NESTED, why_no_key=_NOT_COMPARED, direct_lake=_COMPLEX),
    ColumnType("array<", Family.NESTED, why_no_key=_NOT_COMPARED, direct_lake=_COMPLEX),
    ColumnType("map<", Family.NESTED, why_no_key=_NOT_COMPARED, direct_lake=_COMPLEX),
    ColumnType("variant", Family.NESTED, why_no_key="variants can't be compared in Fabric", direct_lake=_COMPLEX),
    ColumnType("void", Family.REFUSED, why_no_key="it only has NULLs", direct_lake=None),
)
LANDING_TYPES = tuple(kind.name for kind in COLUMN_TYPES if kind.arrow is not None)
SPARK_NAMES = {kind.delta: kind.name for kind in COLUMN_TYPES if kind.delta}
_BY_NAME = {kind.name: kind for kind in COLUMN_TYPES}
_UNKNOWN = ColumnType("", Family.REFUSED, direct_lake=None)


def column_type(spelling: str) -> ColumnType:
    """Return the row of a type in Spark's spelling, such as `array<int>`; for an unknown type, one that is refused."""
    name = _NAME.match(spelling)
    return _BY_NAME.get(name[0] if name else spelling, _UNKNOWN)


def decimal_digits(spelling: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type; None for other types."""
    digits = _DECIMAL.fullmatch(spelling)
    return (int(digits[1]), int(digits[2])) if digits else None


# Tables of the SQL endpoint from before 2025-11-18 have varchar(8000), newer ones 16 MB (reference `landing-zone` §5).
LONG_BYTES, MOST_BYTES = 8_000, 16 << 20
# The largest length in bytes of each text or binary column that has a value of more than LONG_BYTES, by name.
LongValues: TypeAlias = Mapping[str, int]


def longest(*found: LongValues) -> LongValues:
    """Return the largest length of each column."""
    names = {name for one in found for name in one}
    return {name: max(one.get(name, 0) for one in found) for name in sorted(names)}
