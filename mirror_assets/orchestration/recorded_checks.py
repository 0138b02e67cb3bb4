"""The newest recorded results of checks: a scheduled run records an unchanged result once a day.

Recorded at each run, a hundred tables would write half a million results a day into Dagster's storage.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import dagster as dg

from mirror_assets.landing.problems import ProblemKey
from mirror_assets.orchestration.dagster_internals import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    AssetCheckExecutionRecord,
    AssetRecord,
)
from mirror_assets.pipeline.evaluation import FailedCheck

# An unchanged result is recorded once a day: people see that the check runs, and a plot has points.
_AGAIN_SECONDS = 86_400.0
# Dagster hides a result when another run materializes the asset: then it is recorded again, not more often than this.
HIDDEN_SECONDS = 600.0
_KEYS_A_QUERY = 500
# Metadata of a result that was recorded once more: when it was found.
_FOUND: Final = "found"


class RecordedChecks:
    """The newest result of each check, read once."""

    def __init__(self, instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]) -> None:
        """Read the newest record of each key."""
        self._instance, storage = instance, instance.event_log_storage
        self._records: dict[dg.AssetCheckKey, AssetCheckExecutionRecord] = {}
        for begin in range(0, len(keys), _KEYS_A_QUERY):
            asked = keys[begin : begin + _KEYS_A_QUERY]
            self._records.update(storage.get_latest_asset_check_execution_by_key(asked))

    @cached_property
    def _assets(self) -> dict[dg.AssetKey, AssetRecord]:
        assets, found = list({key.asset_key for key in self._records}), dict[dg.AssetKey, AssetRecord]()
        for begin in range(0, len(assets), _KEYS_A_QUERY):
            records = self._instance.get_asset_records(assets[begin : begin + _KEYS_A_QUERY])
            found |= {record.asset_entry.asset_key: record for record in records}
        return found

    def last(self, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
        """Return the newest result; None where the newest run of the check has none, or it never ran."""
        record = self._records.get(key)
        if record is None or record.status not in COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES:
            return None
        return record.evaluation

    def is_abandoned(self, key: dg.AssetCheckKey) -> bool:
        """Return whether the newest run of the check has ended without a result: Dagster shows the check as failed."""
        record = self._records.get(key)
        return record is not None and self.last(key) is None and not self._is_coming(record)

    def _is_coming(self, record: AssetCheckExecutionRecord) -> bool:
        """Return whether an active run will record the check."""
        run = self._instance.get_run_by_id(record.run_id)
        return run is not None and not run.is_finished

    def again(self, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
        """Return the newest result once more, with the time when it was found: its asset was materialized since.

        Without it, Dagster would show "not evaluated" until a check that needs Spark runs again.
        """
        last = self.last(key)
        if last is None:
            return None
        at = last.metadata.get(_FOUND) or dg.MetadataValue.timestamp(self._records[key].create_timestamp)
        return dg.AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=key.name,
            passed=last.passed,
            metadata={_FOUND: at, **last.metadata},
            severity=last.severity,
            description=last.description,
            blocking=last.blocking,
        )

    def is_due(self, found: dg.AssetCheckEvaluation) -> bool:
        """Return whether to record the result: it has changed, the last one is a day old, or Dagster hides that one.

        A different number alone is not a change: a late table has waited for longer each time. A result that an active
        run will record is left to that run.
        """
        last, record = self.last(found.asset_check_key), self._records.get(found.asset_check_key)
        if last is None and record is not None and self._is_coming(record):
            return False
        if last is None or last.passed != found.passed or _FOUND in last.metadata:
            return True
        if self._is_hidden(found.asset_check_key):
            return True
        is_old = time.time() - self._records[found.asset_check_key].create_timestamp >= _AGAIN_SECONDS
        return is_old or (not found.passed and _severity_and_cause(last) != _severity_and_cause(found))

    def _is_hidden(self, key: dg.AssetCheckKey) -> bool:
        """Return whether the asset was materialized since, by another run: Dagster then shows "not evaluated".

        What was recorded within ten minutes has time: a table with many commits would be recorded at each run.
        """
        record, asset = self._records[key], self._assets.get(key.asset_key)
        newest = asset.asset_entry.last_materialization_record if asset else None
        if newest is None or newest.event_log_entry.run_id == record.run_id:
            return False
        if time.time() - record.create_timestamp < HIDDEN_SECONDS:
            return False
        target = record.evaluation.target_materialization_data if record.evaluation else None
        if target is None:
            return bool(newest.timestamp >= record.create_timestamp)
        return bool(target.storage_id != newest.storage_id)


def _severity_and_cause(found: dg.AssetCheckEvaluation) -> tuple[dg.AssetCheckSeverity, str]:
    code = found.metadata.get("code")
    failed = FailedCheck("", found.description or "", code=None if code is None else str(code.value))
    return found.severity, failed.cause(ProblemKey("", "", found.check_name))
