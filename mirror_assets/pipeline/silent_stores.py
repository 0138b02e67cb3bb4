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

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError

# One request may be lost. This many recent ones mean that the store is unreachable.
_ENOUGH, _RECENT_SECONDS = 5, 600.0
_ZONE, _SOURCE = "the landing zone", "the source"
_SILENCES = {
    ErrorCode.STORE_UNAVAILABLE: _ZONE,
    ErrorCode.STORE_THROTTLED: _ZONE,
    ErrorCode.SOURCE_UNAVAILABLE: _SOURCE,
    ErrorCode.CATALOG_UNAVAILABLE: _SOURCE,
}


def is_silence(error: MirrorError) -> bool:
    """Return whether a store did not respond, so that an immediate retry would wait again."""
    return error.code in _SILENCES


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
        began, address = time.monotonic(), urlsplit(table.source)
        # A folder of this machine is a store of its own.
        store = f"{address.scheme}://{address.netloc}" if address.netloc else table.source
        for place in [name for name, is_asked in ((_ZONE, zone), (store, source)) if is_asked]:
            with self._lock:
                unanswered = self._unanswered.get(place, [])
                recent = [error for at, error in unanswered if began - at < _RECENT_SECONDS]
            if len(recent) >= _ENOUGH:
                what = f"{place} did not respond to {_ENOUGH} requests, and was skipped for this table"
                raise RetryError(f"{what}: {recent[0].what}", recent[0].next_step, code=recent[0].code)
        try:
            yield
        except RetryError as error:
            if is_silence(error):
                place = _ZONE if _SILENCES[error.code] == _ZONE else store
                with self._lock:
                    self._unanswered.setdefault(place, []).append((began, error))
            raise
