"""The errors of `init`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.errors import leave_out_version
from mirror_assets.storage.lake.lake_address import shown


def lake_unfit(place: str, why: str, next_step: str) -> SettingError:
    """The lake can't be read under this name."""
    safe = shown(urlsplit(place)) if "://" in place else place
    return SettingError(f"{safe} can't be used as a lake: {why}.", next_step, code=ErrorCode.SOURCE_UNREADABLE)


def no_tables(place: str, depth: int) -> SettingError:
    """The lake has no table."""
    return SettingError(
        f"{place} has no Delta tables, down to {depth} folders below it.",
        leave_out_version(place) or "correct the address, or scan deeper folders with --depth.",
        code=ErrorCode.SOURCE_NOT_DELTA,
    )


def no_tables_in_catalog(catalog: str, schema: str, others: int) -> SettingError:
    """The catalog lists no Delta table."""
    also = f", and {others} views or tables of other formats" if others else ""
    return SettingError(
        f"the catalog {catalog} lists no Delta tables in schemas like {schema!r}{also}.",
        "correct --catalog or --schema, or grant the token's owner USE SCHEMA and SELECT.",
        code=ErrorCode.SOURCE_NOT_DELTA,
    )


def file_exists(file: Path) -> SettingError:
    """A file exists that would be overwritten."""
    return SettingError(
        f"{file} exists.", "choose another with --out, or overwrite it with --force.", code=ErrorCode.PATH_REFUSED
    )


def file_unwritable(file: Path, why: str) -> SettingError:
    """A file can't be written."""
    return SettingError(f"{file} can't be written: {why}.", "choose another with --out.", code=ErrorCode.PATH_REFUSED)
