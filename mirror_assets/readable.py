"""Prepares rows of Spark for messages."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from mirror_assets.sql_names import quoted

_WITH_A_YEAR = (DateType, TimestampType, TimestampNTZType)


def readable(rows: DataFrame) -> DataFrame:
    """Return the rows with dates and timestamps as texts: Python has none before year 1 and after 9999."""
    texts = {
        field.name: F.col(quoted(field.name)).cast("string")
        for field in rows.schema
        if isinstance(field.dataType, _WITH_A_YEAR)
    }
    return rows.withColumns(texts) if texts else rows
