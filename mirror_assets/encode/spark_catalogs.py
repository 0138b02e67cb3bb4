"""Catalogs in a Spark session: the location of a table, and the keys that a Unity Catalog hands out to read it.

Any configured catalog has locations, such as a Hive metastore. The JVMs that use keys renew them: Delta's JARs bring
Unity Catalog's own classes for Hadoop. They fetch keys where files are read, on the driver and on executors, fetch new
ones before those end, and keep the file systems of different tables separate, also of one bucket
(docs/decisions/0015-vended-credentials-in-spark.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mirror_assets.encode.errors import FILE_SYSTEM_MISSING, KEYS_UNUSABLE
from mirror_assets.encode.jvm import Jvm
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.spark_api import condition_of, is_classic, java_exception

# Keys themselves, which the classes would only begin with: they fetch their own.
_SECRETS = ("fs.s3a.init.", "fs.azure.init.", "fs.gs.init.")
_FILE_SYSTEMS = {
    "s3": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
}
_CLIENT = "io.unitycatalog.hadoop.UCCredentialHadoopConfs"
_DEFAULT = "spark_catalog"
# Signs in errors of an unknown table or schema.
_UNKNOWN = ("NOT_FOUND", "NoSuchTable", "NoSuchNamespace", "NoSuchDatabase")


@dataclass(frozen=True)
class CatalogKeys:
    """What a session needs to fetch keys for one table: the catalog's server and token, and its id for the table.

    `reach` has Hadoop's settings for the table's store; `own_names` the names that settings of an identity have for
    this bucket or account alone, which beat those of other tables.
    """

    table: str
    server: str
    table_id: str
    scheme: str
    token: str | None = field(default=None, repr=False)
    reach: Mapping[str, str] = field(default_factory=dict)
    own_names: Mapping[str, str] = field(default_factory=dict)


_SETTINGS: WeakKeyDictionary[SparkSession, tuple[CatalogKeys, tuple[str, ...]]] = WeakKeyDictionary()


def use_keys(spark: SparkSession, keys: CatalogKeys | None) -> None:
    """Let the session read the table of these keys from now on, and no other by a catalog's keys.

    Raises FILE_SYSTEM_MISSING, KEYS_UNUSABLE, and the errors of `spark_errors` where the catalog hands out no keys.
    """
    known = _SETTINGS.get(spark)
    if known is not None and known[0] == keys:
        return
    for name in known[1] if known else ():
        spark.conf.unset(name)
    _SETTINGS.pop(spark, None)
    if keys is None:
        return
    if not is_classic(spark):
        raise KEYS_UNUSABLE(table=keys.table, why="a Spark Connect server")
    jvm = Jvm(spark)
    if keys.scheme in _FILE_SYSTEMS and not jvm.has_class(_FILE_SYSTEMS[keys.scheme]):
        raise FILE_SYSTEM_MISSING(table=keys.table, scheme=keys.scheme)
    if not jvm.has_class(_CLIENT):
        raise KEYS_UNUSABLE(table=keys.table, why=f"Spark {spark.version} without the JARs of Delta 4.4 or newer")
    with spark_errors(f"{keys.table}: Spark asks the catalog for keys"):
        made = _settings_by_catalog(jvm, keys)
    settings = {name: value for name, value in made.items() if not name.startswith(_SECRETS)}
    own = {keys.own_names[name]: value for name, value in settings.items() if name in keys.own_names}
    settings |= {**keys.reach, **own}
    for name, value in settings.items():
        spark.conf.set(name, value)
    _SETTINGS[spark] = (keys, tuple(settings))


def _settings_by_catalog(jvm: Jvm, keys: CatalogKeys) -> dict[str, str]:
    """Return Hadoop's settings as Unity Catalog's own library makes them."""
    unity, auth = jvm.root.io.unitycatalog.hadoop, jvm.root.java.util.HashMap()
    auth.put("type", "static")
    auth.put("token", keys.token or "")
    provider = jvm.root.io.unitycatalog.client.auth.TokenProvider.create(auth)
    builder = unity.UCCredentialHadoopConfs.builder(keys.server, keys.scheme).tokenProvider(provider)
    read = getattr(unity, "UCCredentialHadoopConfs$TableOperation").READ
    made = builder.hadoopConf(jvm.session.sessionState().newHadoopConf()).buildForTable(keys.table_id, read)
    entries = jvm.java_list(made.entrySet())
    pairs = (entries.get(index) for index in range(entries.size()))
    return {str(pair.getKey()): str(pair.getValue()) for pair in pairs}


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
            if catalog == _DEFAULT and is_classic(spark):
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
            java = java_exception(error) if isinstance(error, Py4JJavaError) else condition_of(error)
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
