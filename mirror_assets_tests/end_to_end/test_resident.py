"""Runs that follow their sources: in Dagster until they end by themselves, on the command line until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import batch_lease
from mirror_assets.landing.run_records import read_failure
from mirror_assets.orchestration import table_events
from mirror_assets.orchestration.jobs import TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_assets import partitions_name
from mirror_assets.orchestration.resident import FollowSources
from mirror_assets.orchestration.runs import mirror_name
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.pipeline import leases
from mirror_assets.pipeline.leases import batch_holder, has_runs, request_end
from mirror_assets.pipeline.scheduler import Scheduler
from mirror_assets_tests import quick_jvm
from mirror_assets_tests.end_to_end.ticks import Location
from mirror_assets_tests.lab import TABLE, Lab, key

_SECONDS = 60.0
ZONE = asset_key(AssetKind.LANDING, TABLE)


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def commit(lab: Lab, number: int) -> None:
    """A commit that needs no Spark, beside a run that has the session."""
    rows = pa.table({"id": pa.array([number], pa.int32()), "name": ["x"], "amount": [1.0]})
    write_deltalake(lab.uri, rows, mode="append")


def covered(lab: Lab) -> int:
    manifest = lab.context.manifest()
    return -1 if manifest is None else manifest.covered


def test_a_resident_run_mirrors_commits_as_they_come_until_the_sensor_has_newer_definitions(
    mirrored: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_READ_AFTER_SECONDS", 0.1)
    location, ours = Location.of(mirrored, instance), mirror_name(instance, None)

    def others() -> None:
        wait_for(lambda: has_runs(mirrored.store))
        try:
            for number in (900, 901):
                commit(mirrored, number)
                wait_for(lambda number=number: covered(mirrored) == number - 894)  # type: ignore[misc]
        finally:
            lease = batch_holder(mirrored.store, ours, 0)
            assert lease is not None
            request_end(mirrored.store, lease, batch_lease(ours, 0), "newer code")

    follow = FollowSources(every_seconds=0.1, minutes=60, batch=0, code="code")
    config = dg.RunConfig(ops={TABLES_OP: MirrorTables(follow=follow)})
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(others)
        result = location.job("mirror_all", config)
        other.result()
    (report,) = result.output_for_node(TABLES_OP)
    assert (report.slices, report.covered) == (2, 7)
    assert instance.get_materialized_partitions(ZONE) == {str(key(6, 6)), str(key(7, 7))}
    assert not has_runs(mirrored.store)


def test_dagsters_database_may_be_away_while_a_run_mirrors(
    mirrored: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: the run ended 0.5 s after its database was restarted, and Dagster showed it as running."""
    monkeypatch.setattr(leases, "_READ_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(table_events, "_RETRY_SECONDS", 0.2)
    is_away, ours = threading.Event(), mirror_name(instance, None)
    for storage, methods in (
        (instance.event_log_storage, ("store_event", "add_dynamic_partitions", "get_paginated_dynamic_partitions")),
        (instance.run_storage, ("add_run_tags", "get_runs", "get_run_records")),
    ):
        for method in methods:
            monkeypatch.setattr(storage, method, partial(_refused_while, is_away, getattr(storage, method)))

    def others() -> None:
        wait_for(lambda: has_runs(mirrored.store))
        commit(mirrored, 900)
        wait_for(lambda: covered(mirrored) == 6)
        wait_for(lambda: str(key(6, 6)) in instance.get_materialized_partitions(ZONE))
        is_away.set()
        for number in (901, 902):
            commit(mirrored, number)
            wait_for(lambda number=number: covered(mirrored) == number - 894)  # type: ignore[misc]
        lease = batch_holder(mirrored.store, ours, 0)
        assert lease is not None
        request_end(mirrored.store, lease, batch_lease(ours, 0), "newer code")
        time.sleep(1.0)
        assert has_runs(mirrored.store), "it does not end before its events are recorded"
        is_away.clear()

    follow = FollowSources(every_seconds=0.1, minutes=60, batch=0, code="code")
    config = dg.RunConfig(ops={TABLES_OP: MirrorTables(follow=follow)})
    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(others)
        result = Location.of(mirrored, instance).job("mirror_all", config)
        is_away.clear()
        other.result()
    assert result.success
    (report,) = result.output_for_node(TABLES_OP)
    assert (report.slices, report.error) == (3, None)
    assert read_failure(mirrored.store, TABLE) is None
    landed = [record.partition_key for record in instance.fetch_materializations(ZONE, limit=10).records]
    assert landed == [str(key(8, 8)), str(key(7, 7)), str(key(6, 6))]
    assert set(landed) <= set(instance.get_dynamic_partitions(partitions_name(ZONE)))


def _refused_while(is_away: threading.Event, call: Callable[..., object], *args: object, **kwargs: object) -> object:
    if is_away.is_set():
        raise OperationalError("connection refused")
    return call(*args, **kwargs)


class OperationalError(Exception):
    """An error of a database's driver."""


def test_a_run_whose_spark_has_died_ends_so_that_the_next_one_goes_on(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def died(*_: object) -> SliceRecord:
        raise RuntimeError("the gateway's socket is closed")

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", died)
    monkeypatch.setattr("mirror_assets.orchestration.mirror_tables.spark_has_ended", lambda: True)
    follow = FollowSources(every_seconds=0.1, minutes=60, batch=0, code="code")
    result = Location.of(waiting, instance).job(
        "mirror_all", dg.RunConfig(ops={TABLES_OP: MirrorTables(follow=follow)})
    )
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    assert "Spark's JVM has ended" in (told.description or "")
    assert not has_runs(waiting.store)


@pytest.mark.parametrize("follow", [FollowSources(every_seconds=0.1, minutes=60, pending=[str(TABLE)]), None])
def test_a_slice_that_is_stopped_with_its_run_is_no_failure_of_the_table(
    waiting: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, follow: FollowSources | None
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def stopped(*_: object) -> SliceRecord:
        begun.set()
        ended.wait(_SECONDS)
        raise RuntimeError("the return value of SparkContext.dagScheduler() is null")

    def interrupted(scheduler: Scheduler, _: float = 0.0) -> None:
        scheduler._start_turns()
        assert begun.wait(_SECONDS)
        threading.Timer(0.5, ended.set).start()
        raise dg.DagsterExecutionInterruptedError

    monkeypatch.setattr("mirror_assets.pipeline.stage.stage_attempt", stopped)
    monkeypatch.setattr(Scheduler, "run_turns", interrupted)
    config = dg.RunConfig(ops={TABLES_OP: MirrorTables(follow=follow)})
    assert not Location.of(waiting, instance).job("mirror_all", config).success
    assert ended.is_set()
    assert read_failure(waiting.store, TABLE) is None


@pytest.mark.long(25)
def test_ctrl_c_ends_the_command_behind_the_slices_under_way(mirrored: Lab) -> None:
    command = [str(Path(sys.executable).with_name("mirror-assets")), "run", "--follow", "--every", "100ms", "--json"]
    environment = {**os.environ, **quick_jvm.ENVIRONMENT, "PYTHONUNBUFFERED": "1"}
    environment.pop("DAGSTER_HOME", None)
    process = subprocess.Popen(
        [*command, "--config", str(mirrored.config_file)], stdout=subprocess.PIPE, env=environment, text=True
    )
    killer = threading.Timer(240, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        commit(mirrored, 900)
        landed = json.loads(process.stdout.readline())
        assert (landed["table"], landed["version"], landed["rows"], landed["slices"]) == (str(TABLE), 6, 1, 1)
        commit(mirrored, 901)
        assert json.loads(process.stdout.readline())["slices"] == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    finally:
        killer.cancel()
        process.kill()
    assert covered(mirrored) == 7
    assert not list((mirrored.root / "landing" / "_leases").glob("shop*"))
