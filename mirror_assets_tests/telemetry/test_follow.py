"""A real `run --follow`: what it serves, sends and logs; and a table that is stuck, while nothing happens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mirror_assets_tests.telemetry.collector import Collector, attributes, exposed
from mirror_assets_tests.telemetry.follower import TABLES, Follower
from mirror_assets_tests.telemetry.recorded import exported_metrics
from mirror_assets_tests.telemetry.scrape import Series, free_port, scrape, value, wait_for

ORDERS, LINES = TABLES
_SECRET = "Bearer hunter2-hunter2"  # noqa: S105 it must not turn up


@dataclass(frozen=True)
class Story:
    """What was seen: scrapes after the first load, after a change, and twice while one table is stuck; then the end."""

    collector: Collector
    loaded: Series
    changed: Series
    stuck: tuple[Series, Series]
    code: int
    messages: list[dict[str, object]]
    status: list[dict[str, object]]
    jobs: list[str]


# One process follows the tables once for all of these.
pytestmark = [pytest.mark.long(60), pytest.mark.xdist_group("follow")]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    collector, port = Collector(), free_port()
    exports = f"{{prometheus: {{port: {port}}}, otlp: {{endpoint: {collector.url}}}}}"
    headers = {
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={_SECRET}".replace(" ", "%20"),
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
    }
    follower = Follower(tmp_path_factory.mktemp("follow"), exports, headers)
    follower.create()
    follower.start()
    try:
        yield _record_story(follower, collector, port)
    finally:
        follower.kill()
        collector.close()


def _record_story(follower: Follower, collector: Collector, port: int) -> Story:
    loaded = wait_for(port, lambda found: all(_covers(found, name, 0) for name in TABLES))
    follower.append(ORDERS, [4, 5])
    changed = wait_for(port, lambda found: _covers(found, ORDERS, 1))
    follower.append(LINES, [None])
    first = wait_for(port, lambda found: value(found, "mirror_check_passed", table=LINES, check="key_presence") == 0)
    first = wait_for(port, lambda found: value(found, "mirror_lag_commits", table=LINES) == 1)
    time.sleep(3)
    second = scrape(port)
    code, _, messages = follower.end()
    assert follower.run("replicate").returncode == 0
    status = json.loads(follower.run("status", "--json").stdout)
    lines = [json.loads(line) for line in messages.splitlines()]
    return Story(collector, loaded, changed, (first, second), code, lines, status, follower.described_jobs())


def _covers(series: Series, table: str, version: int) -> bool:
    return value(series, "mirror_covered_version", table=table) == version


def test_what_has_landed_is_counted(story: Story) -> None:
    for table in TABLES:
        assert value(story.loaded, "mirror_slices_total", table=table, kind="snapshot") == 1
        assert value(story.loaded, "mirror_rows_total", table=table, change="inserts") == 3
        assert value(story.loaded, "mirror_files_total", table=table) == 1
        assert value(story.loaded, "mirror_lag_seconds", table=table) == 0
        assert value(story.loaded, "mirror_check_passed", table=table, check="key_presence") == 1
    assert value(story.changed, "mirror_rows_total", table=ORDERS, change="inserts") == 5
    stages = {dict(labels)["stage"] for name, labels in story.changed if name == "mirror_stage_seconds_total"}
    assert stages == {"plan", "stage", "check", "publish"}
    assert value(story.changed, "mirror_estimated_requests_total", table=ORDERS) == 2 * (16 + 2)


def test_a_stuck_table_lags_more_and_more_and_the_other_does_not(story: Story) -> None:
    first, second = story.stuck
    lags = [value(series, "mirror_lag_seconds", table=LINES) for series in (first, second)]
    assert lags[0] is not None
    assert lags[1] is not None
    assert lags[1] >= lags[0] + 3
    assert value(second, "mirror_lag_seconds", table=ORDERS) == 0
    failing = {
        dict(labels)["check"] for (name, labels), at in second.items() if name == "mirror_check_passed" and not at
    }
    assert failing == {"key_presence", "not_failing"}, "what was not looked at has not failed"
    assert value(second, "mirror_failures_total", table=LINES, code="checks_failed") == 1
    looked = value(second, "mirror_polled_time_seconds", table=ORDERS)
    assert looked is not None
    assert time.time() - looked < 120


def test_each_slice_has_a_trace_that_goes_on_where_the_mirror_applies_it(story: Story) -> None:
    by_slice: dict[tuple[str, str], list[str]] = {}
    for span in story.collector.spans:
        told = attributes(span.attributes)
        if span.name == "plan":
            continue
        by_slice.setdefault((told["mirror.table"], told["mirror.slice"]), []).append(span.name)
    way = ["apply", "check", "publish", "slice", "stage"]
    assert sorted(by_slice[ORDERS, "1.0-0"]) == way
    assert sorted(by_slice[ORDERS, "1.1-1"]) == way
    assert sorted(by_slice[LINES, "1.1-1"]) == ["check", "slice", "stage"]
    failed = {span.name: span.status.message for span in story.collector.spans if span.status.message}
    assert failed == {"slice": "checks_failed"}
    traces = {
        attributes(span.attributes)["mirror.slice"]: span.trace_id
        for span in story.collector.spans
        if span.name == "apply"
    }
    assert len(set(traces.values())) == len(traces)


def test_the_collector_gets_all_metrics_and_no_secret(story: Story) -> None:
    missing = set(exported_metrics()) - {exposed(metric) for metric in story.collector.metrics.values()}
    # A local disk, no daemon, and no Fabric.
    assert missing == {
        "mirror_store_requests_total",
        "mirror_daemon_heartbeat_time_seconds",
        "mirror_sync_latency_seconds",
    }
    assert not any(b"hunter2" in body for body in story.collector.bodies)


def test_every_message_is_a_line_of_json_and_says_what_it_is_about(story: Story) -> None:
    fields = {"time", "level", "message", "table", "slice", "attempt", "trace_id"}
    assert all(fields <= set(line) for line in story.messages)
    landed = [line for line in story.messages if line["message"] == "the slice has landed"]
    assert {(line["table"], line["slice"], line["rows"]) for line in landed} == {
        (ORDERS, "1.0-0", 3),
        (LINES, "1.0-0", 3),
        (ORDERS, "1.1-1", 2),
    }
    failed = next(line for line in story.messages if line["level"] == "error" and line["table"] == LINES)
    assert failed["slice"] == "1.1-1"
    assert failed["attempt"]
    spans = {span.trace_id.hex() for span in story.collector.spans}
    assert {line["trace_id"] for line in (*landed, failed)} <= spans
    assert story.code == 1
    assert "hunter2" not in json.dumps(story.messages)


def test_status_estimates_what_a_day_costs(story: Story) -> None:
    lines = {str(line["table"]): line for line in story.status}
    # One slice of one file within the first hour counts as one an hour.
    assert lines[ORDERS]["day_requests"] == 24 * (16 + 2)
    assert lines[ORDERS]["day_cu_seconds"] == round(24 * (21 + 0.3 * 17))
    assert lines[LINES]["day_requests"] is None


def test_jobs_of_spark_say_which_slice_and_trace_they_are_for(story: Story) -> None:
    traces = {
        (told["mirror.table"], told["mirror.slice"]): span.trace_id.hex()
        for span in story.collector.spans
        if (told := attributes(span.attributes))
    }
    for (table, slice_), trace in traces.items():
        assert f"{table}, slice {slice_}, stage, trace {trace}" in story.jobs
