"""Errors of a catalog of tables; each message names the table, the catalog and the next step."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError

_SHOWN = 300


def first_line(text: str) -> str:
    """Return the first line of another program's text, at most 300 characters, without a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_SHOWN].rstrip(".") if lines else "no reason given"


CATALOG_UNAVAILABLE = ErrorRow(
    ErrorCode.CATALOG_UNAVAILABLE,
    RetryError,
    "The catalog that has the table's address did not answer, or is busy.",
    "{what}: the catalog {catalog} does not answer: {why}.",
    "run again. If the error persists, check `catalogs.{catalog}.url` and that this host can reach the catalog.",
    "mirror-assets doctor --table TABLE --no-spark",
)


CATALOG_TOKEN_MISSING = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "A catalog whose token is not in the environment.",
    "the catalog {catalog} needs a token, and {variable} is not in the environment.",
    "set {variable} in this process's environment, or correct `catalogs.{catalog}.token_variable`.",
    "mirror-assets doctor --no-spark",
)


CATALOG_DENIED = ErrorRow(
    ErrorCode.CATALOG_REFUSED,
    SettingError,
    "A token that the catalog doesn't accept, or that has too few permissions.",
    "{what}: the catalog {catalog} refuses access: {why}.",
    "check the token that `catalogs.{catalog}.token_variable` names, and grant its owner USE CATALOG, USE SCHEMA "
    "and SELECT on the table (in Databricks also EXTERNAL USE SCHEMA).",
    "mirror-assets doctor --table TABLE --no-spark",
)


CATALOG_TABLE_UNKNOWN = ErrorRow(
    ErrorCode.CATALOG_TABLE_REFUSED,
    SettingError,
    "A table that the catalog doesn't have, or hides.",
    "{what}: the catalog {catalog} has no such table: {why}.",
    "correct the table's `source` in mirror.yaml, or `catalogs.{catalog}.name`, its catalog's name there.",
    "mirror-assets doctor --table TABLE --no-spark",
)


CATALOG_REFUSED = ErrorRow(
    ErrorCode.CATALOG_REFUSED,
    SettingError,
    "A response that a Unity Catalog doesn't send.",
    "{what}: the catalog {catalog} can't be queried: {why}.",
    "check that `catalogs.{catalog}.url` is that of a Unity Catalog (…/api/2.1/unity-catalog).",
    "mirror-assets doctor --table TABLE --no-spark",
)


CATALOG_TABLE_UNFIT = ErrorRow(
    ErrorCode.SOURCE_NOT_DELTA,
    SettingError,
    "An entry of the catalog that is not a Delta table in a store.",
    "{what}: in the catalog {catalog} it is {kind}, not a Delta table in a store.",
    "name a Delta table; of a view, mirror the tables that it reads.",
    "mirror-assets doctor --table TABLE",
)


CATALOG_LOCATION_UNFIT = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    SettingError,
    "A table whose address neither reader supports.",
    "{what}: its address in the catalog {catalog} is not supported: {why}.",
    "mirror a table in S3, Azure Storage, OneLake, Google Cloud Storage, HDFS or a folder of this machine.",
    "mirror-assets doctor --table TABLE",
)


CREDENTIALS_NOT_VENDED = ErrorRow(
    ErrorCode.CATALOG_TABLE_REFUSED,
    SettingError,
    "A catalog that vends no credentials for the table that both readers can use.",
    "{what}: the catalog {catalog} vends no usable credentials for it: {why}.",
    "let the catalog vend credentials to external readers (in Databricks: external data access of the metastore, "
    "and EXTERNAL USE SCHEMA), or write `catalogs.{catalog}.credentials: stores`: then the table is read with the"
    " identity of its store in `stores`.",
    "mirror-assets doctor --table TABLE --no-spark",
)
