"""How far a table's landing folder is behind its source."""

from __future__ import annotations

from mirror_assets.audit.lag import Lag
from mirror_assets.config import TableSettings
from mirror_assets.delta.log import SourceLog
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import Store


def table_lag(store: Store, table: TableSettings, now: float) -> Lag:
    """The lag at `now` (seconds since 1970), from the age of the first uncovered commit; one commit is read at most."""
    log = SourceLog(table.source)
    tip = log.state().version
    standing = drive(read_manifest(table.name), store)
    covered = standing.manifest.covered if standing else -1
    if covered >= tip:
        return Lag(tip, covered, 0.0)
    first = max(covered + 1, log.earliest())
    (oldest,) = log.commits(first, first)
    return Lag(tip, covered, max(0.0, now - oldest.timestamp_ms / 1000))
