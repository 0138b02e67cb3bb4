"""Translates the errors of deltalake and its object stores to errors with a code and a next step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from deltalake.exceptions import DeltaError, TableNotFoundError

from mirror_assets.errors import MirrorError
from mirror_assets.source.errors import (
    AddressOfDatabricks,
    CatalogManaged,
    LogGap,
    NoColumns,
    SourceNotDelta,
    SourceUnavailable,
    SourceUnreadable,
    SourceUnsupported,
)
from mirror_assets.source.fault_errors import fault_error, find_fault, store_named

_COLOUR = re.compile(r"\x1b\[\d*m")
_BACKTRACE = re.compile(r"\n\s*0: .*", re.DOTALL)
# deltalake gives one OSError for everything a storage can answer; its words tell what only a person can mend.
_SETTING = re.compile(
    r"lacked (valid auth|the necessary)|loading credentials|\b40[134] |Config error|Permission denied", re.IGNORECASE
)

# What the library says around an answer of a store, and nowhere else.
_BY_STORE = re.compile(
    r"Error performing|Generic \w+ error|lacked (?:valid auth|the nec)|loading credentials|HTTP error"
)
_WORDLESS = "Error performing HEAD"
# How Rust writes an error of the operating system.
_SYSTEM = re.compile(r'(?:Error: )?Os \{ code: \d+, kind: \w+, message: "([^"]*)" \}')

# The library names both sides of a hole in the log; the first side's version is the last before it.
_GAP = re.compile(r"Expected contiguous commit files, but found gap: .*?version: (\d+)")
# A listing has a commit's checksum, and not the commit: the store is slow to show what is new.
_BEHIND = re.compile(r"CRC file version \d+ is newer than log segment version \d+")
# What a table needs is told by words, too: the library has one error for all.
_FEATURE = re.compile(r"Feature '(.+?)' is not supported")
_READER = re.compile(r"Unsupported minimum reader version (\d+)")
_TYPE = re.compile(r"Unsupported Delta table type: '(.+?)'")
_CATALOG = re.compile(r"catalog-managed|Feature 'catalogOwned'", re.IGNORECASE)
_NO_COLUMNS = re.compile(r"with empty schema|unmasked nulls.*\bschemaString\b")
# A store without folders has no log there; a disk has no folder.
_NO_LOG = re.compile(r"No files in log segment|\(No such file or directory\)")
_DATABRICKS = re.compile(r"dbfs:", re.IGNORECASE)


@contextmanager
def translated(uri: str, ask: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Raise an error of `source.errors` in place of one of deltalake's.

    `ask` makes a request that a store refuses with words: the answer to a HEAD request has none. A missing file
    (FileNotFoundError) passes through: what it means depends on the file.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except TableNotFoundError as error:
        raise _of_store(uri, _words(error)) or _not_found(uri, _words(error)) from error
    except DeltaError as error:
        raise _of_store(uri, _words(error)) or _of_table(uri, _words(error)) from error
    except OSError as error:
        words = _words(error)
        if _WORDLESS in words:
            with suppress(FileNotFoundError), translated(uri):
                ask()
        kind = SourceUnreadable if _SETTING.search(words) else SourceUnavailable
        raise _of_store(uri, words) or kind(uri, words) from error


def _of_store(uri: str, words: str) -> MirrorError | None:
    """Return the error for a fault of the table's store; None if the words tell none."""
    store = store_named(uri)
    found = find_fault(words) if store and _BY_STORE.search(words) else None
    return fault_error(uri, store, found) if store and found else None


def _of_table(uri: str, words: str) -> MirrorError:
    if _DATABRICKS.match(uri):
        return AddressOfDatabricks(uri)
    if gap := _GAP.search(words):
        return LogGap(uri, int(gap[1]) + 1)
    if _BEHIND.search(words):
        return SourceUnavailable(uri, "its store does not list the newest commit yet")
    if _CATALOG.search(words):
        return CatalogManaged(uri)
    if _NO_COLUMNS.search(words):
        return NoColumns(uri)
    need = _need(words)
    return SourceUnreadable(uri, words) if need is None else SourceUnsupported(uri, need)


def _need(words: str) -> str | None:
    """What of a reader the table needs that the library does not have, or None."""
    if feature := _FEATURE.search(words):
        return f"the table feature `{feature[1]}`"
    if reader := _READER.search(words):
        return f"reader version {reader[1]} of Delta's protocol"
    if column_type := _TYPE.search(words):
        return f"a column of type `{column_type[1]}`"
    return words if "Unsupported" in words else None


def _not_found(uri: str, words: str) -> MirrorError:
    return SourceNotDelta(uri) if _NO_LOG.search(words) else SourceUnreadable(uri, words)


def _words(error: Exception) -> str:
    """The message in one line, without colours, arrows and stack frames."""
    plain = _BACKTRACE.sub("", _COLOUR.sub("", str(error))).replace("↳", "")
    plain = _SYSTEM.sub(r"(\1)", plain)
    return " ".join(plain.split()).rstrip(".!")
