"""Prepares rows of Spark for messages."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.column_types import Family, column_type
from mirror_assets.sql_names import quoted


def readable(rows: DataFrame) -> DataFrame:
    """Return the rows with dates and timestamps as texts: Python has none before year 1 and after 9999."""
    texts = {
        field.name: F.col(quoted(field.name)).cast("string")
        for field in rows.schema
        if column_type(field.dataType.simpleString()).family is Family.TIME
    }
    return rows.withColumns(texts) if texts else rows
