"""The types and values with which a source's rows must be in the mirror: the second writing of docs/encoding.md.

It is written twice on purpose: what the encoder or its table of types has wrong must differ from this. So it shares no
code with `encode` and `column_types.py`, and builds JSON text from its parts in place of Spark's `to_json`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from mirror_assets.source.schema import Projection
from mirror_assets.spark_api import file_metadata, valid_utf8
from mirror_assets.spark_names import quoted

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DAY_MICROSECONDS = 86_400_000_000
# A JSON writer escapes these characters only.
_TO_ESCAPE = r'["\\\x00-\x1F]'
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
# Java's decimals switch to an exponent from this many zeros on after the point.
_PLAIN_SCALE = 6


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
# The landing type of `timestamp_ntz`, by the setting of this name.
_NTZ_FORMS = {"utc": "timestamp", "text": "string", "as_is": "timestamp_ntz"}


def landed_as(type_name: str) -> LandedType:
    """Return how a type of PySpark's with this name lands."""
    return LANDED_TYPES.get(type_name, _UNLANDED)


def arrow_type(landing_type: str) -> pa.DataType | None:
    """Return the Arrow type that pyarrow reads for a landing type in Spark's spelling; None if the type can't land."""
    decimal = _DECIMAL.fullmatch(landing_type)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return next((one.arrow for one in LANDED_TYPES.values() if one.landing == landing_type), None)


def landed_type(kind: DataType, ntz: str) -> str:
    """Return the landing type of a source's column as Spark spells it; `ntz` is the setting `timestamp_ntz`."""
    if isinstance(kind, TimestampNTZType):
        return _NTZ_FORMS[ntz]
    return "string" if landed_as(kind.typeName()).landing == "string" else str(kind.simpleString())


def is_shown(projection: Projection) -> Column:
    """Return whether a row of the source lands: a value, never NULL.

    Don't filter by it: Spark would push the condition to Delta's reader, which leaves out files by their statistics and
    partition values, and these may be wrong.
    """
    return F.coalesce(F.expr(projection.where), F.lit(col=False)) if projection.where else F.lit(col=True)


def with_absent_columns(rows: DataFrame, projection: Projection) -> DataFrame:
    """Return the rows with NULL for columns of the expressions that this version of the source lacks."""
    there = {name.casefold() for name in rows.columns}
    absent = [name for name in projection.uses if name.casefold() not in there]
    return rows.withColumns({name: F.lit(None) for name in absent}) if absent else rows


def landed_types(rows: DataFrame, projection: Projection) -> dict[str, str]:
    """Return the name and the landing type of all columns that can land of these rows; computed ones as declared."""
    types = {field.name: landed_type(field.dataType, projection.ntz.value) for field in rows.schema.fields}
    return types | {column.name: column.type for column in projection.computed}


def landed_value(rows: DataFrame, name: str, projection: Projection) -> Column:
    """Return the value with which a column of the source, a computed column or the row id lands.

    A computed column has a value only in rows that land: its expression may fail for others.
    """
    computed = next((column for column in projection.computed if column.name == name), None)
    if computed is not None:
        value = F.expr(computed.sql).cast(computed.type)
        return F.when(is_shown(projection), value) if projection.where else value
    field = next((field for field in rows.schema.fields if field.name == name), None)
    if field is None:  # the row id
        return file_metadata(rows, "row_id")
    value, kind = F.col(quoted(name)), landed_type(field.dataType, projection.ntz.value)
    if isinstance(field.dataType, TimestampNTZType) and kind != "timestamp_ntz":
        text = F.translate(_with_microseconds(value.cast("string")), "T", " ")
        return text if kind == "string" else F.concat(text, F.lit("Z")).cast("timestamp")
    if kind != "string":
        return value
    # A collation may call `a` and `A` equal; the mirror doesn't.
    return value.cast("string") if isinstance(field.dataType, StringType) else json_of(value, field.dataType)


def json_of(value: Column, kind: DataType) -> Column:
    """Return the value as JSON text; NULL for NULL.

    A struct leaves out members that are NULL; arrays and maps have `null`.
    """
    if isinstance(kind, StructType):
        members = [
            F.concat(
                F.lit(f"{json.dumps(field.name, ensure_ascii=False)}:"), json_of(value[field.name], field.dataType)
            )
            for field in kind.fields
        ]
        text = F.concat(F.lit("{"), F.concat_ws(",", *members), F.lit("}"))
        return F.when(value.isNotNull(), text)
    if isinstance(kind, ArrayType):
        items = F.transform(value, lambda item: _or_null(item, kind.elementType))
        return F.concat(F.lit("["), F.array_join(items, ","), F.lit("]"))
    if isinstance(kind, MapType):
        entries = F.transform(F.map_entries(value), lambda entry: _entry(entry, kind))
        return F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}"))
    if kind.typeName() == "variant":  # only Spark knows its binary form
        return F.to_json(value, {"timeZone": "UTC"})
    text, landed = _text(value, kind), landed_as(kind.typeName())
    if landed.is_float:
        is_finite = ~F.isnan(value) & (F.abs(value) < float("inf"))
        return F.when(is_finite, text).otherwise(_quoted(text))
    return text if landed.is_bare else _quoted(text)


def _or_null(value: Column, kind: DataType) -> Column:
    return F.coalesce(json_of(value, kind), F.lit("null"))


def _entry(entry: Column, kind: MapType) -> Column:
    """Return `"key":value` of a map. The key is the text of its value: of a struct or an array, its JSON text."""
    key, of_key = entry["key"], kind.keyType
    text = json_of(key, of_key) if isinstance(of_key, StructType | ArrayType) else _text(key, of_key)
    return F.concat(_quoted(text), F.lit(":"), _or_null(entry["value"], kind.valueType))


def _text(value: Column, kind: DataType) -> Column:
    """Return a value that is not nested as the text that is in JSON, without quotes and escapes."""
    if isinstance(kind, TimestampType):
        return F.concat(_utc_text(value), F.lit("Z"))
    if isinstance(kind, TimestampNTZType):
        return _with_microseconds(value.cast("string"))
    if isinstance(kind, BinaryType):  # some versions of Spark break the lines of Base64
        return F.translate(F.base64(value), "\r\n", "")
    if isinstance(kind, DecimalType) and kind.scale > _PLAIN_SCALE:
        # As Java writes it, 1E-8: a cast to text does so or not, by Spark's ANSI mode.
        return F.when(value.isNotNull(), F.format_string("%s", value))
    return value.cast("string")


def _utc_text(value: Column) -> Column:
    """Return a time in UTC as `2020-01-01T00:00:00.000001`, by arithmetic: casts follow the session's time zone."""
    micros = F.unix_micros(value)
    of_day = F.pmod(micros, F.lit(_DAY_MICROSECONDS))
    # The division is exact but for the last bit of a double.
    day = F.date_add(F.lit("1970-01-01").cast("date"), F.round((micros - of_day) / _DAY_MICROSECONDS).cast("int"))
    seconds = F.floor(of_day / 1_000_000)
    clock = [F.floor(seconds / 3_600), F.floor(seconds / 60) % 60, seconds % 60, of_day % 1_000_000]
    text = F.format_string("T%02d:%02d:%02d.%06d", *(part.cast("bigint") for part in clock))
    return F.concat(day.cast("string"), text)  # NULL if the day is


def _with_microseconds(text: Column) -> Column:
    """Convert Spark's text of a time, `2020-01-01 00:00:00[.1]`, to `2020-01-01T00:00:00.100000`."""
    whole, fraction = F.substring_index(text, ".", 1), F.regexp_extract(text, r"\.(\d+)$", 1)
    return F.concat(F.translate(whole, " ", "T"), F.lit("."), F.rpad(fraction, 6, "0"))


def _quoted(text: Column) -> Column:
    """Return the text as a JSON string. Bytes that are no UTF-8 become U+FFFD, as for every JSON writer."""
    plain = valid_utf8(text.cast("string"))
    escaped = F.array_join(F.transform(F.split(plain, ""), _escaped), "")
    return F.concat(F.lit('"'), F.when(plain.rlike(_TO_ESCAPE), escaped).otherwise(plain), F.lit('"'))


def _escaped(character: Column) -> Column:
    code = F.concat(F.lit("\\u00"), F.lpad(F.hex(F.ascii(character)), 2, "0"))
    known = [(F.lit(one), F.lit(escape)) for one, escape in _SHORT_ESCAPES.items()]
    value = F.when(character == known[0][0], known[0][1])
    for one, escape in known[1:]:
        value = value.when(character == one, escape)
    return value.when(character < F.lit(" "), code).otherwise(character)
