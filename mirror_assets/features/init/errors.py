"""The errors of `init`."""

from __future__ import annotations

from urllib.parse import urlsplit

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError, StopError
from mirror_assets.lakes.lake_store import shown
from mirror_assets.redaction import redacted

LAKE_UNFIT = ErrorRow(
    ErrorCode.SOURCE_UNREADABLE,
    SettingError,
    "The address that `init` or `discover` was given is not one of a lake.",
    "{place} can't be used as a lake: {why}.",
    "correct the address.",
    "mirror-assets doctor",
)


def lake_unfit(place: str, why: str, next_step: str) -> SettingError:
    """Return LAKE_UNFIT for an address, which is shown without secrets."""
    return LAKE_UNFIT(place=shown(urlsplit(place)) if "://" in place else place, why=why, next_step=next_step)


NO_TABLES = ErrorRow(
    ErrorCode.SOURCE_NOT_DELTA,
    SettingError,
    "The lake has no table.",
    "{place} has no Delta tables, down to {depth} folders below it.",
    "correct the address, or scan deeper folders with --depth.",
    "mirror-assets doctor",
)
NO_TABLES_IN_CATALOG = ErrorRow(
    ErrorCode.SOURCE_NOT_DELTA,
    SettingError,
    "The catalog lists no Delta table.",
    "the catalog {catalog} lists no Delta tables in schemas like {schema!r}{also}.",
    "correct --catalog or --schema, or grant the token's owner USE SCHEMA and SELECT.",
    "mirror-assets doctor",
)


def no_tables_in_catalog(catalog: str, schema: str, others: int) -> SettingError:
    """Return NO_TABLES_IN_CATALOG; `others` is the number of its other tables and views."""
    also = f", and {others} views or tables of other formats" if others else ""
    return NO_TABLES_IN_CATALOG(catalog=catalog, schema=schema, also=also)


FILE_EXISTS = ErrorRow(
    ErrorCode.PATH_REFUSED,
    SettingError,
    "A file exists that would be overwritten.",
    "{file} exists.",
    "choose another with --out, or overwrite it with --force.",
    "mirror-assets validate",
)
FILE_UNWRITABLE = ErrorRow(
    ErrorCode.PATH_REFUSED,
    SettingError,
    "A file can't be written.",
    "{file} can't be written: {why}.",
    "choose another with --out.",
    "mirror-assets validate",
)
MEMORY_DAMAGED = ErrorRow(
    ErrorCode.LANDING_DAMAGED,
    StopError,
    "A file of discovered tables that this program did not write.",
    "{path} is not a valid list of discovered tables.",
    "restore it from a backup, or run `mirror-assets discover --accept`, which scans and writes it again.",
    "mirror-assets check --table TABLE --only file_continuity\nmirror-assets rebuild TABLE",
)
NO_RESPONSE = ErrorRow(
    ErrorCode.SOURCE_UNAVAILABLE,
    RetryError,
    "A place of tables, or a landing zone, that responds too late for loading definitions.",
    "{what} did not respond in time to load the definitions.",
    "check the network and the address; the sensor `mirror` scans again.",
    "mirror-assets doctor --table TABLE",
)
REQUEST_FAILED = ErrorRow(
    ErrorCode.UNEXPECTED,
    StopError,
    "A library raised an exception while tables were discovered.",
    "{what} can't be read: {why}.",
    "check its address and credential; the next scan tries again. If the error persists, report it.",
    "mirror-assets doctor",
)


def request_failed(what: str, error: Exception) -> StopError:
    """Return REQUEST_FAILED for an exception of a library, without secrets."""
    return REQUEST_FAILED(what=what, why=redacted(f"{type(error).__name__}: {error}")[:300])
