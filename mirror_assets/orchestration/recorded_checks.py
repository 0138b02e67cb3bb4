"""The newest recorded results of checks: what a schedule finds again and again is recorded seldom.

Recorded at each run, a hundred tables would write half a million results a day into Dagster's storage.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import dagster as dg
from dagster._core.storage.asset_check_execution_record import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)

# So many results that are no news are recorded a minute, those that were recorded longest ago: people see when a check
# ran last, and a plot has points. A result takes ten kilobytes of SQLite: these are 30 MB a day.
_RECORDED_A_MINUTE = 2
# Alerts forget a failed check that nobody evaluates for a week.
_FAILED_AGAIN_SECONDS = 86_400.0
_KEYS_A_QUERY = 500


class RecordedChecks:
    """What Dagster has recorded last of some checks, read once."""

    def __init__(self, instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey], minutes: int = 0) -> None:
        """Read the newest record of each key; `minutes` are between two runs of the schedule."""
        storage = instance.event_log_storage
        self._records: dict[dg.AssetCheckKey, AssetCheckExecutionRecord] = {}
        for begin in range(0, len(keys), _KEYS_A_QUERY):
            asked = keys[begin : begin + _KEYS_A_QUERY]
            self._records.update(storage.get_latest_asset_check_execution_by_key(asked))
        oldest = sorted((record.create_timestamp, key) for key, record in self._records.items())
        failed = [at for at in oldest if self._records[at[1]].status is AssetCheckExecutionRecordStatus.FAILED]
        again = [at for at in failed if time.time() - at[0] > _FAILED_AGAIN_SECONDS]
        self._due = frozenset(key for _, key in (*oldest[: _RECORDED_A_MINUTE * minutes], *again))

    def last(self, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
        """Return the newest result; None where the newest run of the check has none, or it never ran."""
        record = self._records.get(key)
        if record is None or record.status not in COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES:
            return None
        return record.evaluation

    def is_news(self, found: dg.AssetCheckEvaluation) -> bool:
        """Return whether the result is to be recorded: it says something else than the last, or that is long ago."""
        key = found.asset_check_key
        last = self.last(key)
        if last is None or key in self._due or last.passed != found.passed:
            return True
        return not found.passed and (last.severity, last.description) != (found.severity, found.description)
