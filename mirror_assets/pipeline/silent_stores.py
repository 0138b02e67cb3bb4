"""Skips requests to stores that do not respond, while many tables are polled or checked.

A request to a store that accepts connections and never responds takes half a minute to two minutes, and a table needs
several. With five hundred tables, one round would take hours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from mirror_assets.config import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError

# One request may be lost. This many recent ones mean that the store is unreachable.
_ENOUGH, _LATELY_SECONDS = 5, 600.0
_ZONE = "the landing zone"
_OF_ZONE = frozenset({ErrorCode.STORE_UNAVAILABLE, ErrorCode.STORE_THROTTLED})
_OF_SOURCE = frozenset({ErrorCode.SOURCE_UNAVAILABLE, ErrorCode.CATALOG_UNAVAILABLE})


def is_silence(error: MirrorError) -> bool:
    """Return whether a store did not respond, so that an immediate retry would wait again."""
    return error.code in _OF_ZONE | _OF_SOURCE


class SilentStores:
    """The stores that did not respond, during one round over many tables; threads may share it."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._unanswered: dict[str, list[tuple[float, RetryError]]] = {}

    @contextmanager
    def asking(self, table: TableSettings, *, zone: bool = True, source: bool) -> Iterator[None]:
        """Ask the landing zone in the block, the table's source, or both.

        Raises RetryError at once if one of them did not respond to several recent requests, of any tables.
        """
        store, began = _store_of(table.source), time.monotonic()
        for place, is_asked in ((_ZONE, zone), (store, source)):
            if is_asked:
                self._refuse(place, began)
        try:
            yield
        except RetryError as error:
            if error.code in _OF_ZONE:
                self._note(_ZONE, began, error)
            elif error.code in _OF_SOURCE:
                self._note(store, began, error)
            raise

    def _refuse(self, place: str, now: float) -> None:
        with self._lock:
            lately = [error for began, error in self._unanswered.get(place, []) if now - began < _LATELY_SECONDS]
        if len(lately) >= _ENOUGH:
            what = f"{place} did not respond to {_ENOUGH} requests, and was skipped for this table: {lately[0].what}"
            raise RetryError(what, lately[0].next_step, code=lately[0].code)

    def _note(self, place: str, began: float, error: RetryError) -> None:
        with self._lock:
            self._unanswered.setdefault(place, []).append((began, error))


def _store_of(source: str) -> str:
    """Return the store of the address, such as `s3://bucket`; a folder of this machine is a store of its own."""
    parts = urlsplit(source)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else source
