"""What can go wrong with a catalog of tables; each message names the table, the catalog and the next step."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError

_SHOWN = 300


def first_line(text: str) -> str:
    """Return the first line of a text from outside, at most 300 characters, without a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_SHOWN].rstrip(".") if lines else "no reason given"


def catalog_unavailable(what: str, catalog: str, why: str) -> RetryError:
    """The catalog did not answer, or answered that it is busy; `what` is the table, or what else was asked for."""
    return RetryError(
        f"{what}: the catalog {catalog} does not answer: {why}.",
        f"run again; if it stays so, check `catalogs.{catalog}.url` and that the catalog can be reached from here.",
        code=ErrorCode.CATALOG_UNAVAILABLE,
    )


def catalog_token_missing(catalog: str, variable: str) -> SettingError:
    """The variable with the catalog's token is not in the environment."""
    return SettingError(
        f"the catalog {catalog} needs a token, and {variable} is not in the environment.",
        f"set {variable} in this process's environment, or correct `catalogs.{catalog}.token_variable`.",
        code=ErrorCode.CREDENTIAL_INCOMPLETE,
    )


def catalog_denied(what: str, catalog: str, why: str) -> SettingError:
    """The catalog knows the token and grants too little, or does not know it."""
    return SettingError(
        f"{what}: the catalog {catalog} refuses access: {why}.",
        f"check the token that `catalogs.{catalog}.token_variable` names, and grant its owner USE CATALOG, USE SCHEMA "
        "and SELECT on the table (in Databricks also EXTERNAL USE SCHEMA).",
        code=ErrorCode.CATALOG_DENIED,
    )


def catalog_table_unknown(what: str, catalog: str, why: str) -> SettingError:
    """The catalog has no such table, or does not show it."""
    return SettingError(
        f"{what}: the catalog {catalog} has no such table: {why}.",
        f"correct the table's `source` in mirror.yaml, or `catalogs.{catalog}.name`, its catalog's name there.",
        code=ErrorCode.CATALOG_TABLE_UNKNOWN,
    )


def catalog_refused(what: str, catalog: str, why: str) -> SettingError:
    """The catalog answered what its interface does not have."""
    return SettingError(
        f"{what}: the catalog {catalog} can't be asked: {why}.",
        f"check that `catalogs.{catalog}.url` is that of a Unity Catalog (…/api/2.1/unity-catalog).",
        code=ErrorCode.CATALOG_REFUSED,
    )


def catalog_table_unfit(what: str, catalog: str, kind: str) -> SettingError:
    """What the catalog has under the name is no Delta table in a store."""
    return SettingError(
        f"{what}: in the catalog {catalog} it is {kind}, not a Delta table that lies in a store.",
        "name a Delta table; of a view, mirror the tables that it reads.",
        code=ErrorCode.SOURCE_NOT_DELTA,
    )


def catalog_location_unfit(what: str, catalog: str, why: str) -> SettingError:
    """No reader of this project can read the table's address."""
    return SettingError(
        f"{what}: the catalog {catalog} says that it lies at an address that can't be read here: {why}.",
        "mirror a table in S3, Azure Storage, OneLake, Google Cloud Storage, HDFS or a folder of this machine.",
        code=ErrorCode.SOURCE_UNREADABLE,
    )


def credentials_not_vended(what: str, catalog: str, why: str) -> SettingError:
    """The catalog hands out no credentials for the table."""
    return SettingError(
        f"{what}: the catalog {catalog} hands out no credentials for it: {why}.",
        "let the catalog vend credentials to external readers (in Databricks: external data access of the metastore, "
        f"and EXTERNAL USE SCHEMA), or write `catalogs.{catalog}.credentials: stores`: then the table is read with the "
        "identity of its store in `stores`.",
        code=ErrorCode.CREDENTIALS_NOT_VENDED,
    )


def credentials_unusable(what: str, catalog: str, kinds: str) -> SettingError:
    """The catalog hands out credentials of a kind that one of the two readers can't use."""
    return SettingError(
        f"{what}: the catalog {catalog} hands out credentials that can't be used to read it: {kinds}.",
        f"write `catalogs.{catalog}.credentials: stores`, and an identity for the table's store in `stores`.",
        code=ErrorCode.CREDENTIALS_NOT_VENDED,
    )
