"""Reads the location of a table from the catalogs of a Spark session: a Hive metastore, or any other configured one."""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mirror_assets.encode.private.jvm import Jvm
from mirror_assets.encode.spark_errors import spark_errors

_DEFAULT = "spark_catalog"
# Signs in errors of an unknown table or schema.
_UNKNOWN = ("NOT_FOUND", "NoSuchTable", "NoSuchNamespace", "NoSuchDatabase")


@dataclass(frozen=True)
class SparkTable:
    """The entry of a table in a catalog: its provider, such as `delta`, and its location; a view has no location."""

    provider: str
    location: str | None
    kind: str


def find_table(spark: SparkSession, catalog: str, table: str) -> SparkTable | None:
    """Return the catalog's entry for `schema.table`, or None; reads no file of the table where possible.

    Raises the errors of `spark_errors`: SparkInterrupted for an unreachable metastore.
    """
    with spark_errors(f"{table}: Spark asks its catalog {catalog}"):
        try:
            if catalog == _DEFAULT:
                # Ask the metastore only: `DESCRIBE` would also open the table's log.
                state = Jvm(spark).session.sessionState()
                found = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(_quoted(table)))
                location, provider = found.storage().locationUri(), found.provider()
                return SparkTable(
                    str(provider.get()).lower() if provider.isDefined() else "",
                    str(location.get().toString()) if location.isDefined() else None,
                    str(found.tableType().name()).lower(),
                )
            rows = spark.sql(f"DESCRIBE TABLE EXTENDED {_quoted(f'{catalog}.{table}')}").collect()
            known = {str(row[0]).strip(): str(row[1]) for row in rows}
            return SparkTable(known.get("Provider", "").lower(), known.get("Location"), known.get("Type", "").lower())
        except (AnalysisException, Py4JJavaError) as error:
            java = error.java_exception if isinstance(error, Py4JJavaError) else error.getCondition()
            text = str(java or error)
            if any(sign in text for sign in _UNKNOWN):
                return None
            raise


def list_tables(spark: SparkSession, catalog: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of the catalog's tables and views, as (schema, name).

    Raises the errors of `spark_errors`.
    """
    with spark_errors(f"Spark lists its catalog {catalog}"):
        schemas = [str(row[0]) for row in spark.sql(f"SHOW NAMESPACES IN {_quoted(catalog)}").collect()]
        return tuple(
            (schema, str(row["tableName"]))
            for schema in schemas
            for row in spark.sql(f"SHOW TABLES IN {_quoted(f'{catalog}.{schema}')}").collect()
            if not row["isTemporary"]
        )


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))
