"""Finds other code locations of this Dagster instance whose assets have the same keys: their events share one page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

import dagster as dg
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

from mirror_assets.config import Config
from mirror_assets.orchestration.asset_names import Kind
from mirror_assets.orchestration.jobs import MIRROR_ALL
from mirror_assets.orchestration.mirror_status import status_key
from mirror_assets.orchestration.sensor_assets import assets_of

_AGAIN_SECONDS = 300.0
_RECENT_SECONDS = 3600.0
_NEWEST_RUNS, _NEWEST_EVENTS = 20, 100
_EVENTS = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION}


@dataclass
class SharedAssets:
    """Reads Dagster's events of the last hour, every few minutes."""

    _message: str = ""
    _due: float = 0.0

    def message(self, instance: dg.DagsterInstance, here: Mapping[str, str], config: Config) -> str:
        """Return a message that names the code locations and a shared asset; empty if no asset is shared.

        `here` has the tag of this location's runs.
        """
        if here and time.monotonic() >= self._due:
            self._due = time.monotonic() + _AGAIN_SECONDS
            ours = here[REPOSITORY_LABEL_TAG]
            shared = {label: key for label, key in _recorded(instance, config) if label not in ("", ours)}
            self._message = "; ".join(_shared(config, ours, label, key) for label, key in sorted(shared.items()))
        return self._message


def _shared(config: Config, ours: str, other: str, key: dg.AssetKey) -> str:
    names = " and ".join(label.rpartition("@")[2] for label in (ours, other))
    step = "Mirror them in separate Dagster instances"
    if key == status_key(config):
        step = "Give their configuration files different names"
    return f"code locations {names} both write events of the asset {key.to_user_string()}. {step}"


def _recorded(instance: dg.DagsterInstance, config: Config) -> Iterator[tuple[str, dg.AssetKey]]:
    """Yield the label of each recent run's code location, and an asset of this configuration that the run wrote to."""
    status, since = status_key(config), time.time() - _RECENT_SECONDS
    recent = dg.AssetRecordsFilter(asset_key=status, after_timestamp=since)
    observed = {record.run_id for record in instance.fetch_observations(recent, limit=_NEWEST_RUNS).records}
    for run in instance.get_runs(dg.RunsFilter(run_ids=list(observed))) if observed else ():
        yield run.tags.get(REPOSITORY_LABEL_TAG, ""), status
    tables = set(assets_of(config, (Kind.SOURCE, Kind.CHANGES, Kind.LANDING)))
    mirrors = dg.RunsFilter(job_name=MIRROR_ALL, updated_after=datetime.fromtimestamp(since, timezone.utc))
    for run in instance.get_runs(mirrors, limit=_NEWEST_RUNS):
        events = instance.get_records_for_run(run.run_id, of_type=_EVENTS, limit=_NEWEST_EVENTS, ascending=False)
        for key in tables & {record.asset_key for record in events.records}:
            yield run.tags.get(REPOSITORY_LABEL_TAG, ""), key
