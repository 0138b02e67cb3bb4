"""Errors of a catalog of tables; each message names the table, the catalog and the next step."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError

_SHOWN = 300


def first_line(text: str) -> str:
    """Return the first line of another program's text, at most 300 characters, without a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_SHOWN].rstrip(".") if lines else "no reason given"


def catalog_unavailable(what: str, catalog: str, why: str) -> RetryError:
    """Return the error for a catalog that did not answer, or is busy; `what` is the table, or the request's subject."""
    return RetryError(
        f"{what}: the catalog {catalog} does not answer: {why}.",
        f"run again. If the error persists, check `catalogs.{catalog}.url` and that this host can reach the catalog.",
        code=ErrorCode.CATALOG_UNAVAILABLE,
    )


def catalog_token_missing(catalog: str, variable: str) -> SettingError:
    """Return the error for a catalog whose token is not in the environment."""
    return SettingError(
        f"the catalog {catalog} needs a token, and {variable} is not in the environment.",
        f"set {variable} in this process's environment, or correct `catalogs.{catalog}.token_variable`.",
        code=ErrorCode.CREDENTIAL_UNFIT,
    )


def catalog_denied(what: str, catalog: str, why: str) -> SettingError:
    """Return the error for a token that the catalog doesn't accept, or that has too few permissions."""
    return SettingError(
        f"{what}: the catalog {catalog} refuses access: {why}.",
        f"check the token that `catalogs.{catalog}.token_variable` names, and grant its owner USE CATALOG, USE SCHEMA "
        "and SELECT on the table (in Databricks also EXTERNAL USE SCHEMA).",
        code=ErrorCode.CATALOG_REFUSED,
    )


def catalog_table_unknown(what: str, catalog: str, why: str) -> SettingError:
    """Return the error for a table that the catalog doesn't have, or hides."""
    return SettingError(
        f"{what}: the catalog {catalog} has no such table: {why}.",
        f"correct the table's `source` in mirror.yaml, or `catalogs.{catalog}.name`, its catalog's name there.",
        code=ErrorCode.CATALOG_TABLE_REFUSED,
    )


def catalog_refused(what: str, catalog: str, why: str) -> SettingError:
    """Return the error for a response that a Unity Catalog doesn't send."""
    return SettingError(
        f"{what}: the catalog {catalog} can't be queried: {why}.",
        f"check that `catalogs.{catalog}.url` is that of a Unity Catalog (…/api/2.1/unity-catalog).",
        code=ErrorCode.CATALOG_REFUSED,
    )


def catalog_table_unfit(what: str, catalog: str, kind: str) -> SettingError:
    """Return the error for an entry of the catalog that is not a Delta table in a store."""
    return SettingError(
        f"{what}: in the catalog {catalog} it is {kind}, not a Delta table in a store.",
        "name a Delta table; of a view, mirror the tables that it reads.",
        code=ErrorCode.SOURCE_NOT_DELTA,
    )


def catalog_location_unfit(what: str, catalog: str, why: str) -> SettingError:
    """Return the error for a table whose address neither reader supports."""
    return SettingError(
        f"{what}: its address in the catalog {catalog} is not supported: {why}.",
        "mirror a table in S3, Azure Storage, OneLake, Google Cloud Storage, HDFS or a folder of this machine.",
        code=ErrorCode.SOURCE_UNREADABLE,
    )


def credentials_not_vended(what: str, catalog: str, why: str) -> SettingError:
    """Return the error for a catalog that vends no credentials for the table that both readers can use."""
    return SettingError(
        f"{what}: the catalog {catalog} vends no usable credentials for it: {why}.",
        "let the catalog vend credentials to external readers (in Databricks: external data access of the metastore, "
        f"and EXTERNAL USE SCHEMA), or write `catalogs.{catalog}.credentials: stores`: then the table is read with the "
        "identity of its store in `stores`.",
        code=ErrorCode.CATALOG_TABLE_REFUSED,
    )
