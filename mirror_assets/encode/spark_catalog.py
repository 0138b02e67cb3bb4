"""Asks the catalogs of a Spark session where a table lies: a Hive metastore, or any other that is configured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mirror_assets.encode.private.jvm import Jvm
from mirror_assets.encode.spark_errors import spark_errors

_DEFAULT = "spark_catalog"


@dataclass(frozen=True)
class SparkTable:
    """What a catalog says of a table: its provider, such as `delta`, and where it lies; a view lies nowhere."""

    provider: str
    location: str | None
    kind: str


def find_table(spark: SparkSession, catalog: str, table: str) -> SparkTable | None:
    """Return what the catalog has under `schema.table`, None if nothing; no file of the table is read where possible.

    Raises what `spark_errors` makes of Spark's errors: a metastore that is away is SparkInterrupted.
    """
    with spark_errors(f"{table}: Spark asks its catalog {catalog}"):
        if catalog == _DEFAULT and hasattr(spark, "_jsparkSession"):
            return _or_none(lambda: _of_metastore(spark, table))
        return _or_none(lambda: _described(spark, catalog, table))


def list_tables(spark: SparkSession, catalog: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of what the catalog has, tables and views, as (schema, name).

    Raises what `spark_errors` makes of Spark's errors.
    """
    with spark_errors(f"Spark lists its catalog {catalog}"):
        schemas = [str(row[0]) for row in spark.sql(f"SHOW NAMESPACES IN {_quoted(catalog)}").collect()]
        return tuple(
            (schema, str(row["tableName"]))
            for schema in schemas
            for row in spark.sql(f"SHOW TABLES IN {_quoted(f'{catalog}.{schema}')}").collect()
            if not row["isTemporary"]
        )


def _of_metastore(spark: SparkSession, table: str) -> SparkTable:
    """Ask the metastore alone: `DESCRIBE` would open the table's log, too."""
    jvm = Jvm(spark)
    name = jvm.session.sessionState().sqlParser().parseTableIdentifier(_quoted(table))
    found = jvm.session.sessionState().catalog().getTableMetadata(name)
    location = found.storage().locationUri()
    provider = found.provider()
    return SparkTable(
        str(provider.get()).lower() if provider.isDefined() else "",
        str(location.get().toString()) if location.isDefined() else None,
        str(found.tableType().name()).lower(),
    )


def _described(spark: SparkSession, catalog: str, table: str) -> SparkTable:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {_quoted(f'{catalog}.{table}')}").collect()
    told = {str(row[0]).strip(): str(row[1]) for row in rows}
    return SparkTable(told.get("Provider", "").lower(), told.get("Location"), told.get("Type", "").lower())


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _or_none(ask: Callable[[], SparkTable]) -> SparkTable | None:
    try:
        return ask()
    except AnalysisException as error:
        if _is_unknown(error.getCondition() or str(error)):
            return None
        raise
    except Py4JJavaError as error:
        if _is_unknown(str(error.java_exception)):
            return None
        raise


def _is_unknown(text: str) -> bool:
    return any(word in text for word in ("NOT_FOUND", "NoSuchTable", "NoSuchNamespace", "NoSuchDatabase"))
