"""Raises our errors in place of deltalake's and obstore's, of tables and of stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from deltalake.exceptions import DeltaError, TableNotFoundError

from mirror_assets.errors import MirrorError
from mirror_assets.lakes.errors import CATALOG_MANAGED, SOURCE_UNAVAILABLE, SOURCE_UNREADABLE
from mirror_assets.lakes.store_faults import store_error, store_named
from mirror_assets.source.errors import (
    COLUMNS_ALIKE,
    DATABRICKS_ONLY,
    LOG_GAP,
    NO_COLUMNS,
    SOURCE_UNSUPPORTED,
    source_not_delta,
)
from mirror_assets.source.table_features import feature_unsupported

# deltalake has one class for all errors of a table; only the message has the cause. The first pattern that fits counts.
_TABLE_ERRORS: tuple[tuple[str, Callable[[str, re.Match[str]], MirrorError]], ...] = (
    # The version before the gap comes first.
    (
        r"Expected contiguous commit files, but found gap: .*?version: (\d+)",
        lambda uri, found: LOG_GAP(uri=uri, version=int(found[1]) + 1),
    ),
    # A listing has a commit's checksum, but not yet the commit.
    (
        r"CRC file version \d+ is newer than log segment version \d+",
        lambda uri, _: SOURCE_UNAVAILABLE(uri=uri, why="its store does not list the newest commit yet"),
    ),
    (r"(?i)catalog-managed|Feature 'catalogOwned'", lambda uri, _: CATALOG_MANAGED(uri=uri)),
    (r"with empty schema|unmasked nulls.*\bschemaString\b", lambda uri, _: NO_COLUMNS(uri=uri)),
    (
        r"Duplicate field name \(case-insensitive\): '(.+?)'",
        lambda uri, found: COLUMNS_ALIKE(uri=uri, name=found[1]),
    ),
    (r"Feature '(.+?)' is not supported", lambda uri, found: feature_unsupported(uri, found[1])),
    (
        r"Unsupported minimum reader version (\d+)",
        lambda uri, found: SOURCE_UNSUPPORTED(uri=uri, why=f"reader version {found[1]} of Delta's protocol"),
    ),
    (
        r"Unsupported Delta table type: '(.+?)'",
        lambda uri, found: SOURCE_UNSUPPORTED(uri=uri, why=f"a column of type `{found[1]}`"),
    ),
    (r".*Unsupported.*", lambda uri, found: SOURCE_UNSUPPORTED(uri=uri, why=found[0])),
    (r".*", lambda uri, found: SOURCE_UNREADABLE(uri=uri, why=found[0])),
)
# deltalake has one OSError for every answer of a store. These messages need a person's correction.
_SETTING = re.compile(
    r"lacked (valid auth|the necessary)|loading credentials|\b40[134] |Config error|Permission denied", re.IGNORECASE
)
# What the library writes around a store's answer, and nowhere else.
_BY_STORE = re.compile(
    r"Error performing|Generic \w+ error|lacked (?:valid auth|the nec)|loading credentials|HTTP error"
)
# A store without folders has no log there; a disk has no folder.
_NO_LOG = re.compile(r"No files in log segment|\(No such file or directory\)")


@contextmanager
def translated(uri: str, ask: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Raise an error of `source.errors` in place of one of deltalake's or obstore's.

    The answer to a HEAD request has no body; `ask` then makes a request that a store refuses with a reason. A missing
    file (FileNotFoundError) passes through, because its meaning depends on the file.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (DeltaError, OSError) as error:
        message = _one_line(error)
        if isinstance(error, OSError) and "Error performing HEAD" in message:
            with suppress(FileNotFoundError), translated(uri):
                ask()
        raise _translation(uri, error, message) from error


def _translation(uri: str, error: DeltaError | OSError, message: str) -> MirrorError:
    store = store_named(uri)
    if store and _BY_STORE.search(message) and (fault := store_error(uri, store, message)):
        return fault
    if isinstance(error, TableNotFoundError):
        return source_not_delta(uri) if _NO_LOG.search(message) else SOURCE_UNREADABLE(uri=uri, why=message)
    if isinstance(error, OSError):
        return (SOURCE_UNREADABLE if _SETTING.search(message) else SOURCE_UNAVAILABLE)(uri=uri, why=message)
    if uri.lower().startswith("dbfs:"):
        return DATABRICKS_ONLY(uri=uri)
    return next(make(uri, found) for pattern, make in _TABLE_ERRORS if (found := re.search(pattern, message)))


def _one_line(error: Exception) -> str:
    """Return the message in one line, without colours, arrows, stack frames and Rust's form of a system error."""
    plain = re.sub(r"\x1b\[\d*m|↳", "", str(error))
    plain = re.sub(r"\n\s*0: .*", "", plain, flags=re.DOTALL)
    plain = re.sub(r'(?:Error: )?Os \{ code: \d+, kind: \w+, message: "([^"]*)" \}', r"(\1)", plain)
    return " ".join(plain.split()).rstrip(".!")
