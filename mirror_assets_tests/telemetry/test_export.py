"""A process exports its records, without a mirror; gauges remain correct while nothing is recorded."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.pipeline.project import exporting_metrics
from mirror_assets.telemetry import record
from mirror_assets.telemetry.export import exporting
from mirror_assets.telemetry.record import Stage
from mirror_assets.telemetry.scope import current_scope, table_scope
from mirror_assets_tests.telemetry.collector import Collector, attributes, exposed
from mirror_assets_tests.telemetry.follower import Follower
from mirror_assets_tests.telemetry.recorded import WORK, exported_metrics, gauges, record_everything
from mirror_assets_tests.telemetry.scrape import free_port, scrape, value, wait_for
from mirror_assets_tests.worlds.kills.process import inherited

_PROMTOOL = shutil.which("promtool")
_SDK_MODULES = "[name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exp', 'prom'))]"


def ignore(_message: str) -> None:
    pass


def test_values_are_scraped(port: int) -> None:
    record_everything()
    series = scrape(port)
    assert value(series, "mirror_rows_total", table="shop.orders", change="inserts") == 5
    assert value(series, "mirror_landed_bytes_total", table="shop.orders") == 100
    assert value(series, "mirror_check_passed", table="shop.orders", check="row_order") == 0
    assert value(series, "mirror_source_version", table="shop.orders") == 7
    assert value(series, "mirror_lag_commits", table="shop.orders") == 4
    assert value(series, "mirror_polled_time_seconds", table="shop.never_polled") == 0
    assert value(series, "mirror_lag_seconds", table="shop.never_polled") is None


def test_heartbeats_are_read_at_each_scrape(port: int) -> None:
    name, beats = "mirror_daemon_heartbeat_time_seconds", {"SENSOR": 1.0, "SCHEDULER": 0.0}
    record.export_heartbeats(lambda: beats)
    assert value(scrape(port), name, daemon="SENSOR") == 1
    beats["SENSOR"] = 2.0
    series = scrape(port)
    assert (value(series, name, daemon="SENSOR"), value(series, name, daemon="SCHEDULER")) == (2, 0)
    record.export_heartbeats(None)
    assert value(scrape(port), name, daemon="SENSOR") is None


@pytest.mark.skipif(_PROMTOOL is None, reason="promtool is not on the path")
def test_prometheus_accepts_any_table_name(port: int) -> None:
    names = ("shop.Orders", "shop.orders", 'a "b"\\c\nd', "größe.été 🙂", "a{b=c}")
    record_everything()
    for name in names:
        gauges().set_source(name, 5, 4, time.time() - 100)
        record.count_failure(name, "checks_failed")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read()
    series = scrape(port)
    judged = subprocess.run([str(_PROMTOOL), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (judged.returncode, judged.stderr.decode()) == (0, "")
    assert [value(series, "mirror_lag_commits", table=name) for name in names] == [1] * len(names)


def test_lag_grows_while_nothing_is_recorded(port: int) -> None:
    gauges().set_source("a", 5, 4, time.time() - 100)
    gauges().set_source("b", 5, 5, None)
    first = scrape(port)
    time.sleep(1.1)
    second = scrape(port)
    before, after = value(first, "mirror_lag_seconds", table="a"), value(second, "mirror_lag_seconds", table="a")
    assert before is not None
    assert after is not None
    assert 100 <= before < 102
    assert after >= before + 1
    assert value(second, "mirror_lag_seconds", table="b") == 0
    polled = [value(series, "mirror_polled_time_seconds", table="b") for series in (first, second)]
    assert polled[0] == polled[1]


def test_chunks_of_a_snapshot_leave_the_oldest_commit_pending(port: int) -> None:
    gauges().set_source("a", 5, -1, time.time() - 100)
    gauges().set_covered("a", -1, None)
    lag = value(scrape(port), "mirror_lag_seconds", table="a")
    assert lag is not None
    assert lag >= 100


def test_a_slice_is_one_trace_with_its_plan_first(collector: Collector) -> None:
    with exporting(ignore, endpoint=collector.url):
        record_everything()
    spans = {span.name: span for span in collector.spans}
    assert set(spans) == {"slice", "plan", "stage", "check", "publish", "apply"}
    assert {span.trace_id for span in collector.spans} == {WORK.trace_id.to_bytes(16, "big")}
    root = spans["slice"]
    assert {spans[name].parent_span_id for name in ("plan", "stage", "check", "publish")} == {root.span_id}
    assert not root.parent_span_id
    assert not spans["apply"].parent_span_id
    assert root.start_time_unix_nano == spans["plan"].start_time_unix_nano < spans["plan"].end_time_unix_nano
    assert {one.key: one.value.int_value for one in root.attributes if one.value.int_value} == {
        "mirror.rows": 5,
        "mirror.files": 1,
    }
    work = {"mirror.table": "shop.orders", "mirror.slice": WORK.slice, "mirror.attempt": "a1"}
    assert attributes(spans["publish"].attributes) == work
    assert {exposed(metric) for metric in collector.metrics.values()} == set(exported_metrics())
    assert collector.resources[-1]["service.name"] == "mirror-assets"


def test_a_span_of_an_error_has_its_code_and_nothing_of_its_message(collector: Collector) -> None:
    error = StopError("password=hunter2 was refused.", "ask.", code=ErrorCode.STORE_DENIED)
    with exporting(ignore, endpoint=collector.url), table_scope("shop.orders"):
        with pytest.raises(StopError), record.slice_span(WORK), record.stage_span(Stage.CHECK, WORK):
            raise error
        scope = current_scope()
        assert scope is not None
        assert (scope.slice, scope.stage) == (WORK.slice, None)
    assert {(span.name, span.status.message) for span in collector.spans} == {
        ("slice", "store_denied"),
        ("check", "store_denied"),
    }
    assert not any(b"hunter2" in body for body in collector.bodies)


def test_a_port_in_use_is_a_warning_and_is_acquired_later() -> None:
    port, warned = free_port(), list[str]()
    other, _ = start_http_server(port, "127.0.0.1", CollectorRegistry())
    with exporting(warned.append, port=port):
        gauges().set_source("a", 5, 5, None)
        assert len(warned) == 1
        assert f"127.0.0.1:{port}" in warned[0]
        assert value(scrape(port), "mirror_source_version", table="a") is None
        other.shutdown()
        other.server_close()
        wait_for(port, lambda series: value(series, "mirror_source_version", table="a") == 5, 15)
    assert scrape(port) == {}


def test_a_refusing_collector_is_reported_once_and_stops_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    collector.status, warned = 401, list[str]()
    with exporting(warned.append, endpoint=collector.url):
        record_everything()
        time.sleep(1)
    assert 1 <= len(warned) <= 3  # of metrics and of traces
    assert all(text.startswith("metrics: ") and "\n" not in text for text in warned)
    assert record.table_gauges() is None


def test_a_silent_collector_does_not_delay_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with exporting(ignore, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}"):
            for _ in range(3000):
                with record.slice_span(WORK):
                    pass
            record_everything()
            began = time.monotonic()
        assert time.monotonic() - began < 8


def test_a_process_exports_once(port: int) -> None:
    with exporting(pytest.fail, port=port):
        gauges().set_source("a", 1, 1, None)
        assert value(scrape(port), "mirror_source_version", table="a") == 1


def test_hundreds_of_tables_have_all_their_series(port: int) -> None:
    for table in range(500):
        for check in range(9):
            record.record_check(f"shop.table_{table}", f"check_{check}", passed=True)
    began = time.monotonic()
    series = scrape(port)
    assert sum(name == "mirror_check_passed" for name, _ in series) == 4500
    assert time.monotonic() - began < 5


def _printed(code: str, **variables: str) -> str:
    """Return the last line that a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=inherited() | variables
    )
    return done.stdout.splitlines()[-1]


def test_without_settings_nothing_is_exported_and_no_sdk_imported() -> None:
    code = (
        "import sys\n"
        "from mirror_assets.telemetry import export, record\n"
        "with export.exporting(print):\n"
        "    record.count_request('a', 'b', 'c')\n"
        f"print({_SDK_MODULES})\n"
    )
    assert _printed(code) == "[]"


def test_a_command_that_reads_imports_no_sdk_even_with_metrics_on(tmp_path: Path) -> None:
    follower = Follower(tmp_path, "{prometheus: {port: 9464}, otlp: {endpoint: 'http://127.0.0.1:9'}}")
    follower.create()
    code = f"import sys\nfrom mirror_assets.cli import main\nassert main(['status']) == 0\nprint({_SDK_MODULES})\n"
    assert _printed(code, MIRROR_CONFIG=str(tmp_path / "mirror.yaml")) == "[]"


def test_without_settings_the_telemetry_of_the_process_is_used() -> None:
    """A project that sets up OpenTelemetry itself gets our counters, durations and spans."""
    code = (
        "from opentelemetry import metrics, trace\n"
        "from opentelemetry.sdk.metrics import MeterProvider\n"
        "from opentelemetry.sdk.metrics.export import InMemoryMetricReader\n"
        "from mirror_assets.telemetry import record\n"
        "reader = InMemoryMetricReader()\n"
        "metrics.set_meter_provider(MeterProvider([reader]))\n"
        "record.count_failure('shop.orders', 'checks_failed')\n"
        "found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics\n"
        "print([(one.name, one.data.data_points[0].value) for one in found])\n"
    )
    assert _printed(code) == "[('mirror.failures', 1)]"


def test_a_batch_has_a_port_and_a_run_that_ends_has_none(tmp_path: Path) -> None:
    port = free_port(neighbours=1)
    Follower(tmp_path, f"{{prometheus: {{port: {port}}}}}").create()
    config = load_config(tmp_path / "mirror.yaml")
    with exporting_metrics(config, pytest.fail, is_resident=True, batch=1):
        gauges().set_source("a", 1, 1, None)
        assert (bool(scrape(port)), bool(scrape(port + 1))) == (False, True)
    with exporting_metrics(config, pytest.fail):
        assert record.table_gauges() is None


@pytest.mark.usefixtures("port")
def test_without_traces_the_log_has_no_trace() -> None:
    with table_scope("shop.orders") as scope, record.slice_span(WORK):
        assert (scope.slice, scope.trace) == (WORK.slice, None)
        assert scope.text == f"shop.orders, slice {WORK.slice}"


def test_a_variable_that_the_sdk_refuses_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    warned = list[str]()
    with exporting(warned.append, endpoint="http://127.0.0.1:9"):
        assert record.table_gauges() is None
    assert len(warned) == 1
    assert warned[0].startswith("metrics are off: ")


def test_the_environment_may_name_the_service(monkeypatch: pytest.MonkeyPatch, collector: Collector) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.instance.id=one")
    with exporting(ignore, endpoint=collector.url):
        record.count_failure("a", "x")
    resource = collector.resources[-1]
    assert resource["service.name"] == "mirror-assets"
    assert (resource["service.instance.id"], resource["deployment.environment"]) == ("one", "test")


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 65_536), ("no.such.host.invalid", 9464), ("a..b", 9464)])
def test_an_invalid_address_is_a_warning(monkeypatch: pytest.MonkeyPatch, host: str, port: int) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_PROMETHEUS_HOST", host)
    warned = list[str]()
    with exporting(warned.append, port=port):
        assert record.table_gauges() is not None
    # Other tests of this process may add warnings.
    assert len([text for text in warned if str(port) in text]) == 1
