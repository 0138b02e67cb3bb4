"""What a landing type looks like in a Parquet file that pyarrow reads."""

from __future__ import annotations

import re

import pyarrow as pa

_SIMPLE: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_type(landing_type: str) -> pa.DataType | None:
    """The Arrow type of a landing type in Spark's spelling; None for one that can't land."""
    decimal = _DECIMAL.fullmatch(landing_type)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _SIMPLE.get(landing_type)
