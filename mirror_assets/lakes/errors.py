"""Errors of reaching a source: its store, its catalog, the identity that reads it."""

from __future__ import annotations

import re

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
CATALOG_INCOMPATIBLE = ErrorRow(
    ErrorCode.CATALOG_REFUSED,
    SettingError,
    "A Unity Catalog that doesn't have a version of the Delta API that this client knows.",
    "{what}: the catalog {catalog} has no version 1 of Unity Catalog's Delta API: {why}.",
    "update mirror-assets, or the catalog's server.",
    "mirror-assets doctor --table TABLE --no-spark",
)
COMMITS_UNFIT = ErrorRow(
    ErrorCode.CATALOG_UNAVAILABLE,
    RetryError,
    "A catalog whose list of a table's newest commits contradicts itself, or an earlier one.",
    "{what}: the catalog {catalog} lists the table's commits {why}.",
    "run again. If the error persists, ask the operator of the catalog: without all commits, nothing is mirrored.",
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


class SourceUnreadable(SettingError):
    """The source can't be read because of its address, its credentials or its log."""

    why: str


SOURCE_UNREADABLE = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    SourceUnreadable,
    "The source can't be read because of its address, its credentials or its log.",
    "{uri} can't be read: {why}.",
    "correct its address (of a table of mirror.yaml, the setting `source`), its credentials or permissions, or "
    "restore the damaged files of its log; then run again.",
    "mirror-assets doctor --table TABLE",
)
SOURCE_UNAVAILABLE = ErrorRow(
    ErrorCode.SOURCE_UNAVAILABLE,
    RetryError,
    "The source's store did not answer, or is busy.",
    "{uri} can't be read now: {why}.",
    "run again. If the error persists, check the host in the table's address and its credentials.",
    "mirror-assets doctor --table TABLE",
)
LOCATION_UNKNOWN = ErrorRow(
    ErrorCode.LOCATION_UNKNOWN,
    RetryError,
    "A table is in a catalog of Spark, which only Spark can query, and no run has queried it yet.",
    "{table}: its address in the catalog {catalog} is not known yet, and only Spark can ask it.",
    "mirror the table once (`mirror-assets run`, or its sensor's run). The address is then cached for an hour.",
    "mirror-assets run --table TABLE",
)
CATALOG_MANAGED = ErrorRow(
    ErrorCode.SOURCE_UNFIT,
    SettingError,
    "A table whose newest commits only its catalog has, and whose `source` isn't its name in a Unity Catalog.",
    "{uri} is managed by a catalog: its log doesn't have the newest commits, so it can't be read by its address.",
    "name it by its catalog: `source: {{catalog: NAME, table: SCHEMA.TABLE}}`, with `NAME: {{type: unity, url: …}}` "
    "in `catalogs`.",
    "mirror-assets doctor --table TABLE",
)
CREDENTIAL_INCOMPLETE = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "The environment variables of a credential are not set.",
    "credential {kind} needs {missing} in the environment.",
    "set them, or choose another credential.",
    "mirror-assets doctor --no-spark",
)
CREDENTIAL_UNFIT = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "Environment variables that azure-identity refuses.",
    "credential {kind} can't be used: {why}",
    "correct the AZURE_ variables in the environment, or choose another credential.",
    "mirror-assets doctor --no-spark",
)
PACKAGE_MISSING = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "A credential that needs a package of an extra.",
    "the package {package} is needed for this credential, and is not installed.",
    "run `pip install 'mirror-assets[{extra}]'`, or choose another credential.",
    "mirror-assets doctor --no-spark",
)
AWS_IDENTITY_UNFIT = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "AWS's SDK doesn't find a credential, or AWS refuses it.",
    "the AWS credential {kind}{assumed} can't be used: {why}.",
    "correct the profile, the variables or the role's trust policy, or choose another credential.",
    "mirror-assets doctor --no-spark",
)


def aws_identity_unfit(kind: str, role: str | None, why: str) -> SettingError:
    """Return AWS_IDENTITY_UNFIT for a credential that assumes `role`, if any."""
    return AWS_IDENTITY_UNFIT(kind=kind, assumed=f", to assume {role}" if role else "", why=why)


SPARK_CANNOT_SIGN_IN = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "Executors of a cluster, which can't request tokens from this process.",
    "executors of {master} can't use the credentials `default` and `certificate` of an Azure store.",
    "choose another in `stores`: client_secret, managed_identity, workload_identity or sas.",
    "mirror-assets doctor --no-spark",
)
STORES_COLLIDE = ErrorRow(
    ErrorCode.CREDENTIAL_UNFIT,
    SettingError,
    "Two stores that need two values of one setting of Hadoop.",
    "Spark can't read {root} in addition to another store: both set {setting}, which has one value.",
    "give stores of one bucket, or of one account, the same kind of credential; or mirror them with two mirror.yaml.",
    "mirror-assets doctor --no-spark",
)
CERTIFICATE_REFUSED = ErrorRow(
    ErrorCode.CERTIFICATE_REFUSED,
    SettingError,
    "The server's certificate is signed by an unknown authority.",
    "the certificate of {where} is refused: {why}.",
    "set ca_bundle to a PEM file with the authority that signed it; verification can't be disabled.",
    "mirror-assets doctor --no-spark",
)
TOKEN_REFUSED = ErrorRow(
    ErrorCode.TOKEN_REFUSED,
    SettingError,
    "No token was issued, or the store did not accept it.",
    "{root} could not be reached as this identity: {why}.",
    "check the credential, the tenant and the authority, and the variables in the environment (for a source, "
    "`credential` in `stores`); run `mirror-assets doctor`.",
    "mirror-assets doctor",
)


# Entra's codes, and what to correct.
_ENTRA_STEPS = {
    "AADSTS7000222": "the client secret has expired: create a new one for the app registration in Entra, set "
    "AZURE_CLIENT_SECRET to its value, and restart the process.",
    "AADSTS7000215": "set AZURE_CLIENT_SECRET to the value of the client secret, not to its id. If it was deleted, "
    "create a new one for the app registration in Entra.",
    "AADSTS700016": "check AZURE_CLIENT_ID, and that AZURE_TENANT_ID is the tenant that has this app registration.",
    "AADSTS90002": "set AZURE_TENANT_ID to the id of your tenant.",
}


def token_step(why: str) -> str | None:
    """Return the next step for an error code in the authority's text; None if it is unknown."""
    return next((step for code, step in _ENTRA_STEPS.items() if re.search(rf"\b{code}\b", why)), None)


def token_refused(root: str, why: str) -> SettingError:
    """Return TOKEN_REFUSED with the first 300 characters of the authority's text."""
    return TOKEN_REFUSED(root=root, why=" ".join(why.split())[:300].rstrip("."), next_step=token_step(why))
