"""Builds the Spark expressions of landed columns, and names the columns of Delta's change feed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, TimestampNTZType

from mirror_assets.column_types import Family, NtzLanding, column_type
from mirror_assets.markers import JSON_OPTIONS, NTZ_TEXT
from mirror_assets.source.schema import LandedColumn, Projection
from mirror_assets.spark_names import quoted

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
# As text: each function and each operator of PySpark is up to three requests to the JVM, and so is a whole text.
IS_NEW_ROW = f"{CHANGE_TYPE} IN ('insert', 'update_postimage')"
# Columns of a scan with row tracking: each row's id, and the version that changed it last.
ROW_ID = "__mirror_row_id__"
ROW_VERSION = "__mirror_row_version__"

# `to_json` writes map keys of these types in Spark's internal form: days, microseconds, or an object's address.
_INTERNAL_AS_KEY = (Family.BINARY, Family.TIME, Family.NESTED)


def projected(rows: DataFrame, projection: Projection) -> DataFrame:
    """Return the landing rows, with the computed columns beside or in place of the source's.

    A column that an older version of the source lacks is NULL. Keys and other columns of type `timestamp_ntz` have the
    form in which they land. Raises what Spark's analyzer raises.

    Texts of a collation become plain ones, so that keys are equal only if their bytes are. The mirror compares keys by
    their bytes. A collation may regard `a` and `A` as one key, and then a change of one to the other would leave the
    old row in the mirror.
    """
    there = {name.casefold() for name in rows.columns}
    absent = {name: F.lit(None) for name in projection.uses if name.casefold() not in there}
    rows = rows.withColumns(absent) if absent else rows
    if projection.where:
        rows = rows.where(F.expr(projection.where))
    values = {column.name: F.expr(column.sql).cast(column.type) for column in projection.computed}
    computed = {name.casefold() for name in values}
    for field in rows.schema:
        value = _landed_form(F.col(quoted(field.name)), field.dataType, projection.ntz)
        if value is not None and field.name.casefold() not in computed:
            values[field.name] = value
    return rows.withColumns(values) if values else rows


def _landed_form(value: Column, kind: DataType, ntz: NtzLanding) -> Column | None:
    """Return the value in the form in which it lands; None for one that lands as it is, or as JSON text."""
    if isinstance(kind, StringType) and kind != StringType():
        return value.cast("string")
    if not isinstance(kind, TimestampNTZType) or ntz is NtzLanding.AS_IS:
        return None
    # Every session is in UTC (`byte_settings.py`), so both read the clock unchanged.
    return value.cast("timestamp") if ntz is NtzLanding.UTC else F.date_format(value.cast("timestamp"), NTZ_TEXT)


def is_new_row() -> Column:
    """Return whether a change feed row holds the state of its key after the commit (insert, update_postimage)."""
    return F.expr(IS_NEW_ROW)


@dataclass(frozen=True)
class HelperNames:
    """Names of the encoders' helper columns, none of them a landed column's."""

    shuffle_key: str
    order: str
    is_new: str
    previous: str
    next: str
    index: str
    is_last: str
    was_there: str
    repeats: str
    key: str
    old_rows: str
    new_rows: str
    stamp_a: str
    stamp_b: str
    is_same: str
    is_found: str
    key_hash: str
    row_hash: str
    key_values: str
    row_values: str
    word: str
    bits: str

    @classmethod
    def beside(cls, columns: Sequence[LandedColumn]) -> HelperNames:
        """Return names with a prefix that no name of a column has, ignoring case as Spark does."""
        taken, prefix = {column.name.lower() for column in columns}, "__"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        return cls(*(f"{prefix}{name.name}" for name in fields(cls)))


def landed_value(column: LandedColumn, rows: DataFrame) -> Column:
    """Return the column of `rows` in its landed form: nested values as JSON text, all others unchanged."""
    value = F.col(quoted(column.name))
    return json_text(value, rows.schema[column.name].dataType) if column.nested else value


def values_where(
    condition: Column, rows: DataFrame, columns: Sequence[LandedColumn], keys: Iterable[str]
) -> list[Column]:
    """Return the landed columns with NULL where the condition is false, except in `keys`: less data to shuffle."""
    always = set(keys)
    return [
        landed_value(column, rows).alias(column.name)
        if column.name in always
        else F.when(condition, landed_value(column, rows)).alias(column.name)
        for column in columns
    ]


def described(columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    """Select landed columns by name; Spark writes `footer`, the first column's metadata, into each Parquet footer."""
    return _with_footer([F.col(quoted(column.name)) for column in columns], columns, footer)


def inserted_row(rows: DataFrame, columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    """Select the landed columns from source rows; Spark writes `footer` into each Parquet footer."""
    values = [F.col(ROW_ID) if column.is_row_id else landed_value(column, rows) for column in columns]
    return _with_footer(values, columns, footer)


def optional(value: Column) -> Column:
    """Return the value as an OPTIONAL Parquet column: a REQUIRED one can't be dropped later (`landing-zone` §4.25).

    The condition is always true, but Spark can't know that; it would fold a constant and restore the non-nullability.
    """
    return F.when(F.monotonically_increasing_id() >= 0, value)


def json_text(value: Column, kind: DataType) -> Column:
    """Return the nested value as JSON text; a map key is written with the same text as a value of its type."""
    return F.to_json(_with_text_keys(value, kind), dict(JSON_OPTIONS))


def _with_footer(values: Sequence[Column], columns: Sequence[LandedColumn], footer: Mapping[str, str]) -> list[Column]:
    named = zip(values, columns, strict=True)
    first, *rest = [(value if column.nullable else optional(value), column.name) for value, column in named]
    return [first[0].alias(first[1], metadata=dict(footer)), *(value.alias(name) for value, name in rest)]


def _with_text_keys(value: Column, kind: DataType) -> Column:
    """Convert the keys of all maps inside the value to text, where `to_json` writes keys unlike values."""
    if not _has_keys_to_convert(kind):
        return value
    if isinstance(kind, StructType):
        members = [_with_text_keys(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(value.isNotNull(), F.struct(*members))
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(value, lambda member: _with_text_keys(member, element))
    assert isinstance(kind, MapType)  # noqa: S101 no other type has keys
    of_key, of_value = kind.keyType, kind.valueType
    family = column_type(of_key.simpleString()).family
    if family is Family.NESTED:
        value = F.transform_keys(value, lambda key, _: json_text(key, of_key))
    elif family in _INTERNAL_AS_KEY:
        value = F.transform_keys(
            value, lambda key, _: F.get_json_object(F.to_json(F.struct(key.alias("k")), dict(JSON_OPTIONS)), "$.k")
        )
    if _has_keys_to_convert(of_value):
        value = F.transform_values(value, lambda _, member: _with_text_keys(member, of_value))
    return value


def _has_keys_to_convert(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_keys_to_convert(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_keys_to_convert(kind.elementType)
    return isinstance(kind, MapType) and (
        column_type(kind.keyType.simpleString()).family in _INTERNAL_AS_KEY or _has_keys_to_convert(kind.valueType)
    )


def row_hash(values: Sequence[tuple[Column, str]], salt: int = 0) -> Column:
    """Return a 64-bit hash of the values, which are given with their types; another salt gives an independent hash.

    Unlike Spark's `xxhash64`, it distinguishes -0.0 from 0.0, and values that moved into a NULL neighbour. All NaN are
    one value, as in Delta. Nested values can't be hashed: pass their JSON text, as it lands.
    """
    parts = [F.lit(salt)]
    for value, kind in values:
        parts += [value, value.isNull()]
        if column_type(kind).family is Family.FLOAT:
            # Only a power is negative for -0.0 alone: comparisons, casts to decimal and `atan2` drop the sign.
            parts.append((value == 0) & (F.pow(value, F.lit(-1.0)) < 0))
    return F.xxhash64(*parts)


def value_stamp(rows: DataFrame, columns: Sequence[LandedColumn]) -> tuple[Column, Column]:
    """Return two hashes of the columns' landed values; both are equal only if all values are.

    A column that `rows` doesn't have is NULL; one that is narrower in an older version has the landed type.
    """
    values = []
    for column in columns:
        value = landed_value(column, rows) if column.name in rows.columns else F.lit(None)
        values.append((value.cast(column.type), column.type))
    return row_hash(values, salt=1), row_hash(values, salt=2)
