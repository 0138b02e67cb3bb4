"""What a process exports of what it is told, without any mirror: gauges tell the truth while nothing happens."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.composition import telling
from mirror_assets.config import load_config
from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.telemetry import record
from mirror_assets.telemetry.export import Export, exporting
from mirror_assets.telemetry.instruments import INSTRUMENTS, Kind, Stage
from mirror_assets.telemetry.record import LandedFigures, Work
from mirror_assets.telemetry.scope import current_scope, table_scope
from mirror_assets.telemetry.trace_ids import slice_trace
from mirror_assets_tests.kills.process import inherited
from mirror_assets_tests.telemetry.collector import Collector, attributes
from mirror_assets_tests.telemetry.follower import Follower
from mirror_assets_tests.telemetry.scrape import free_port, scrape, value, wait_for

_PROMTOOL = shutil.which("promtool")
WORK = Work("/zone", "shop.orders", "1.2-3")


def ignore(_message: str) -> None:
    pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


def tell_everything() -> None:
    """Tell of one slice, and of each other thing, once."""
    record.follows(["shop.orders", "shop.never_looked_at"])
    record.looked("shop.orders", 7, 1, time.time() - 60)
    figures = LandedFigures("shop.orders", "changes", 1, 100, {"inserts": 5, "deletes": 0}, time.time() - 3, 18, 26.1)
    with table_scope("shop.orders"):
        with record.planning("shop.orders"):
            time.sleep(0.01)
        with record.slice_work(WORK):
            for name in (Stage.STAGE, Stage.CHECK, Stage.PUBLISH):
                with record.stage(name, WORK):
                    record.attempt("a1")
            record.landed(figures)
    record.covers("shop.orders", 3, time.time() - 30)
    record.checked("shop.orders", "key_presence", passed=True)
    record.checked("shop.orders", "row_order", passed=False)
    record.failed("shop.orders", "checks_failed")
    record.request("onelake.example", "PUT", "201")
    record.applied([WORK], time.time_ns() - 10**9)
    record.hears(lambda: {"SENSOR": time.time() - 400})


def test_every_metric_is_scraped_by_its_name_and_labels() -> None:
    port = free_port()
    with exporting(Export(port=port), ignore):
        tell_everything()
        series = scrape(port)
    for one in INSTRUMENTS:
        name = f"{one.exposed}_bucket" if one.kind is Kind.HISTOGRAM else one.exposed
        labels = {label for found, pairs in series if found == name for label, _ in pairs} - {"le"}
        assert labels == set(one.labels), name
    assert value(series, "mirror_rows_total", table="shop.orders", change="inserts") == 5
    assert value(series, "mirror_check_passed", table="shop.orders", check="row_order") == 0
    assert value(series, "mirror_source_version", table="shop.orders") == 7
    assert value(series, "mirror_lag_commits", table="shop.orders") == 4
    assert value(series, "mirror_looked_time_seconds", table="shop.never_looked_at") == 0
    assert value(series, "mirror_lag_seconds", table="shop.never_looked_at") is None


def test_heartbeats_are_asked_for_when_somebody_scrapes() -> None:
    port, beats = free_port(), {"SENSOR": 1.0, "SCHEDULER": 0.0}
    with exporting(Export(port=port), ignore):
        record.hears(lambda: beats)
        assert value(scrape(port), "mirror_daemon_heartbeat_time_seconds", daemon="SENSOR") == 1
        beats["SENSOR"] = 2.0
        series = scrape(port)
        assert value(series, "mirror_daemon_heartbeat_time_seconds", daemon="SENSOR") == 2
        assert value(series, "mirror_daemon_heartbeat_time_seconds", daemon="SCHEDULER") == 0
        record.hears(None)
        assert value(scrape(port), "mirror_daemon_heartbeat_time_seconds", daemon="SENSOR") is None


@pytest.mark.skipif(_PROMTOOL is None, reason="promtool is not on the path")
def test_prometheus_takes_whatever_a_table_is_called() -> None:
    port, names = free_port(), ("shop.Orders", "shop.orders", 'a "b"\\c\nd', "größe.été 🙂", "a{b=c}")
    with exporting(Export(port=port), ignore):
        tell_everything()
        for name in names:
            record.looked(name, 5, 4, time.time() - 100)
            record.failed(name, "checks_failed")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read()
        series = scrape(port)
    judged = subprocess.run([str(_PROMTOOL), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (judged.returncode, judged.stderr.decode()) == (0, "")
    for name in names:
        assert value(series, "mirror_lag_commits", table=name) == 1


def test_lag_grows_while_nobody_tells_anything() -> None:
    port = free_port()
    with exporting(Export(port=port), ignore):
        record.looked("a", 5, 4, time.time() - 100)
        record.looked("b", 5, 5, None)
        first = scrape(port)
        time.sleep(1.1)
        second = scrape(port)
    before, after = value(first, "mirror_lag_seconds", table="a"), value(second, "mirror_lag_seconds", table="a")
    assert before is not None
    assert after is not None
    assert 100 <= before < 102
    assert after >= before + 1
    assert value(second, "mirror_lag_seconds", table="b") == 0
    looked = [value(series, "mirror_looked_time_seconds", table="b") for series in (first, second)]
    assert looked[0] == looked[1]


def test_chunks_of_a_snapshot_leave_the_oldest_commit_waiting() -> None:
    port = free_port()
    with exporting(Export(port=port), ignore):
        record.looked("a", 5, -1, time.time() - 100)
        record.covers("a", -1, None)
        lag = value(scrape(port), "mirror_lag_seconds", table="a")
    assert lag is not None
    assert lag >= 100


def test_a_slice_is_one_trace_with_its_plan_first(collector: Collector) -> None:
    with exporting(Export(endpoint=collector.url), ignore):
        tell_everything()
    spans = {span.name: span for span in collector.spans}
    assert set(spans) == {"slice", "plan", "stage", "check", "publish", "apply"}
    assert {span.trace_id for span in collector.spans} == {slice_trace(*vars(WORK).values()).to_bytes(16, "big")}
    root = spans["slice"]
    assert {spans[name].parent_span_id for name in ("plan", "stage", "check", "publish")} == {root.span_id}
    assert not root.parent_span_id
    assert not spans["apply"].parent_span_id
    assert root.start_time_unix_nano == spans["plan"].start_time_unix_nano < spans["plan"].end_time_unix_nano
    told = attributes(spans["publish"].attributes)
    assert {one.key: one.value.int_value for one in root.attributes if one.value.int_value} == {
        "mirror.rows": 5,
        "mirror.files": 1,
    }
    assert told == {"mirror.table": "shop.orders", "mirror.slice": WORK.slice, "mirror.attempt": "a1"}
    assert {one.name for one in INSTRUMENTS} == set(collector.metrics)
    assert collector.resources[-1]["service.name"] == "mirror-assets"


def test_a_span_of_an_error_has_its_code_and_nothing_of_its_message(collector: Collector) -> None:
    error = StopError("password=hunter2 was refused.", "ask.", code=ErrorCode.STORE_DENIED)
    with exporting(Export(endpoint=collector.url), ignore), table_scope("shop.orders"):
        with pytest.raises(StopError), record.slice_work(WORK), record.stage(Stage.CHECK, WORK):
            raise error
        scope = current_scope()
        assert scope is not None
        assert (scope.slice, scope.stage) == (WORK.slice, None)
    assert {(span.name, span.status.message) for span in collector.spans} == {
        ("slice", "store_denied"),
        ("check", "store_denied"),
    }
    assert not any(b"hunter2" in body for body in collector.bodies)


def test_a_port_that_is_taken_is_a_warning_and_is_taken_over_later() -> None:
    port, warned = free_port(), list[str]()
    from prometheus_client import CollectorRegistry, start_http_server

    other, _ = start_http_server(port, "127.0.0.1", CollectorRegistry())
    with exporting(Export(port=port), warned.append):
        record.looked("a", 5, 5, None)
        assert len(warned) == 1
        assert f"127.0.0.1:{port}" in warned[0]
        assert value(scrape(port), "mirror_source_version", table="a") is None
        other.shutdown()
        other.server_close()
        wait_for(port, lambda series: value(series, "mirror_source_version", table="a") == 5, 15)
    assert scrape(port) == {}


def test_a_collector_that_refuses_is_told_once_and_stops_nothing(collector: Collector) -> None:
    collector.status, warned = 401, list[str]()
    with exporting(Export(endpoint=collector.url, every_seconds=0.2), warned.append):
        tell_everything()
        time.sleep(1)
    assert 1 <= len(warned) <= 3  # of metrics and of traces
    assert all(text.startswith("metrics: ") and "\n" not in text for text in warned)
    assert not record.is_on()


def test_a_collector_that_is_away_does_not_hold_up_the_end() -> None:
    began = time.monotonic()
    with exporting(Export(endpoint=f"http://127.0.0.1:{free_port()}"), ignore):
        tell_everything()
    assert time.monotonic() - began < 20


def test_a_collector_that_never_answers_does_not_hold_up_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with exporting(Export(endpoint=endpoint), ignore):
            for _ in range(3000):
                with record.slice_work(WORK):
                    pass
            tell_everything()
            began = time.monotonic()
        assert time.monotonic() - began < 8


def test_there_is_one_export_in_a_process() -> None:
    port = free_port()
    with exporting(Export(port=port), ignore), exporting(Export(port=port), pytest.fail):
        record.looked("a", 1, 1, None)
        assert value(scrape(port), "mirror_source_version", table="a") == 1


def test_hundreds_of_tables_have_all_their_series() -> None:
    port = free_port()
    with exporting(Export(port=port), ignore):
        for table in range(500):
            for check in range(9):
                record.checked(f"shop.table_{table}", f"check_{check}", passed=True)
        began = time.monotonic()
        series = scrape(port)
    assert sum(name == "mirror_check_passed" for name, _ in series) == 4500
    assert time.monotonic() - began < 5


def test_nothing_is_exported_and_nothing_imported_by_default() -> None:
    code = (
        "import sys\n"
        "from mirror_assets.telemetry import export, record\n"
        "with export.exporting(export.Export(), print):\n"
        "    record.request('a', 'b', 'c')\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_command_that_reads_imports_no_sdk_even_with_metrics_on(tmp_path: Path) -> None:
    follower = Follower(tmp_path, "{prometheus: {port: 9464}, otlp: {endpoint: 'http://127.0.0.1:9'}}")
    follower.create()
    code = (
        "import sys\n"
        "from mirror_assets.cli import main\n"
        "assert main(['status']) == 0\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'prometheus'))])\n"
    )
    environment = inherited() | {"MIRROR_CONFIG": str(tmp_path / "mirror.yaml")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_batch_has_a_port_of_its_own_and_a_run_that_ends_has_none(tmp_path: Path) -> None:
    port = free_port(neighbours=1)
    follower = Follower(tmp_path, f"{{prometheus: {{port: {port}}}}}")
    follower.create()
    config = load_config(tmp_path / "mirror.yaml")
    with telling(config, pytest.fail, stays=True, batch=1):
        record.looked("a", 1, 1, None)
        assert (bool(scrape(port)), bool(scrape(port + 1))) == (False, True)
    with telling(config, pytest.fail):
        assert not record.is_on()


def test_without_traces_the_log_names_none() -> None:
    with exporting(Export(port=free_port()), ignore), table_scope("shop.orders") as scope, record.slice_work(WORK):
        assert (scope.slice, scope.trace) == (WORK.slice, None)
        assert scope.text == f"shop.orders, slice {WORK.slice}"


def test_what_the_sdk_does_not_understand_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    warned = list[str]()
    with exporting(Export(endpoint="http://127.0.0.1:9"), warned.append):
        assert not record.is_on()
    assert len(warned) == 1
    assert warned[0].startswith("metrics are off: ")


def test_the_environment_may_name_the_service(monkeypatch: pytest.MonkeyPatch, collector: Collector) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.instance.id=one")
    with exporting(Export(endpoint=collector.url), ignore):
        record.failed("a", "x")
    told = collector.resources[-1]
    assert told["service.name"] == "mirror-assets"
    assert (told["service.instance.id"], told["deployment.environment"]) == ("one", "test")


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 65_536), ("no.such.host.invalid", 9464), ("a..b", 9464)])
def test_an_address_that_cannot_be_is_a_warning(host: str, port: int) -> None:
    warned = list[str]()
    with exporting(Export(host=host, port=port), warned.append):
        assert record.is_on()
    # What others of this process say may stand beside.
    assert len([text for text in warned if str(port) in text]) == 1
