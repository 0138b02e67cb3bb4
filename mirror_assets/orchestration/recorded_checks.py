"""The newest recorded results of checks: a scheduled run records an unchanged result once a day.

Recorded at each run, a hundred tables would write half a million results a day into Dagster's storage.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import dagster as dg

from mirror_assets.orchestration.dagster_internals import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    AssetCheckExecutionRecord,
    AssetRecord,
)

# An unchanged result is recorded once a day: people see that the check runs, a plot has points, and alerts don't
# forget a failed check. Those of many tables are spread over the runs: a result takes ten kilobytes of SQLite.
_AGAIN_SECONDS = 86_400.0
_RECORDED_A_MINUTE = 2
_OUTDATED_SECONDS = 3600.0
_KEYS_A_QUERY = 500


class RecordedChecks:
    """The newest result of each check, read once."""

    def __init__(self, instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey], minutes: int = 0) -> None:
        """Read the newest record of each key; `minutes` are between two runs of the schedule."""
        storage, self._turns = instance.event_log_storage, _RECORDED_A_MINUTE * minutes
        self._records: dict[dg.AssetCheckKey, AssetCheckExecutionRecord] = {}
        for begin in range(0, len(keys), _KEYS_A_QUERY):
            asked = keys[begin : begin + _KEYS_A_QUERY]
            self._records.update(storage.get_latest_asset_check_execution_by_key(asked))
        assets = list({key.asset_key for key in keys})
        self._assets: dict[dg.AssetKey, AssetRecord] = {}
        for begin in range(0, len(assets), _KEYS_A_QUERY):
            found = instance.get_asset_records(assets[begin : begin + _KEYS_A_QUERY])
            self._assets.update({record.asset_entry.asset_key: record for record in found})

    def last(self, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
        """Return the newest result; None where the newest run of the check has none, or it never ran."""
        record = self._records.get(key)
        if record is None or record.status not in COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES:
            return None
        return record.evaluation

    def has_changed(self, found: dg.AssetCheckEvaluation) -> bool:
        """Return whether the result differs from the last one, or Dagster does not show that one any more.

        A different number alone is not a change: a late table has waited for longer each time.
        """
        last = self.last(found.asset_check_key)
        if last is None or last.passed != found.passed or self._is_outdated(found.asset_check_key):
            return True
        return not found.passed and _severity_and_text(last) != _severity_and_text(found)

    def _is_outdated(self, key: dg.AssetCheckKey) -> bool:
        """Return whether the asset was materialized since, by another run: Dagster then shows "not evaluated".

        What was recorded within the hour has time: a table with many commits would be recorded at each run.
        """
        record, asset = self._records[key], self._assets.get(key.asset_key)
        newest = asset.asset_entry.last_materialization_record if asset else None
        if newest is None or newest.event_log_entry.run_id == record.run_id:
            return False
        if time.time() - record.create_timestamp < _OUTDATED_SECONDS:
            return False
        target = record.evaluation.target_materialization_data if record.evaluation else None
        if target is None:
            return bool(newest.timestamp >= record.create_timestamp)
        return bool(target.storage_id != newest.storage_id)

    def due(self, found: Sequence[dg.AssetCheckEvaluation]) -> list[dg.AssetCheckEvaluation]:
        """Return the unchanged results to record again: the oldest, and all that have failed.

        Only results of this run count, because some checks have none: they would always be due.
        """
        long_ago = time.time() - _AGAIN_SECONDS
        old = (one for one in found if self._recorded(one) < long_ago)
        ordered = sorted(old, key=lambda one: self._records[one.asset_check_key].id)
        return [*ordered[: self._turns], *(one for one in ordered[self._turns :] if not one.passed)]

    def _recorded(self, found: dg.AssetCheckEvaluation) -> float:
        return self._records[found.asset_check_key].create_timestamp


_NUMBER = re.compile(r"[\d,.]*\d")


def _severity_and_text(found: dg.AssetCheckEvaluation) -> tuple[dg.AssetCheckSeverity, str]:
    return found.severity, _NUMBER.sub("#", found.description or "")
