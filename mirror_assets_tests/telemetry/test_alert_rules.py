"""The rules of deploy/prometheus: Prometheus' own tests of them, and a real Alertmanager that delivers an alert."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from mirror_assets.telemetry import record
from mirror_assets.telemetry.export import exporting
from mirror_assets_tests.deploy.services import DEPLOY
from mirror_assets_tests.telemetry.recorded import exported_metrics
from mirror_assets_tests.telemetry.scrape import free_port

_RULES, _ALERTMANAGER = DEPLOY / "prometheus" / "rules.yaml", DEPLOY / "prometheus" / "alertmanager.yaml"
_PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager")
_NEEDS_PROGRAMS = pytest.mark.skipif(
    not all(map(shutil.which, _PROGRAMS)), reason="Debian's packages prometheus and prometheus-alertmanager have them"
)
# What is scraped, and which alert it fires after twenty minutes; None: none.
_STORIES = {
    'mirror_lag_seconds{table="a"}': ("3700x20", "MirrorLate"),
    'mirror_lag_seconds{table="b"}': ("3500x20", None),
    'mirror_check_passed{table="a", check="not_failing"}': ("0x20", "MirrorFailing"),
    'mirror_check_passed{table="b", check="not_failing"}': ("1x20", None),
    'mirror_polled_time_seconds{table="a"}': ("0x20", "MirrorNotPolled"),
    'mirror_polled_time_seconds{table="b"}': ("0+60x20", None),
    'mirror_daemon_heartbeat_time_seconds{daemon="SENSOR"}': ("0x20", "MirrorDaemonDead"),
    'mirror_daemon_heartbeat_time_seconds{daemon="SCHEDULER"}': ("0+60x20", None),
    'up{job="mirror"}': ("0x20", "MirrorDown"),
}


def _alerts() -> list[dict[str, str]]:
    (group,) = yaml.safe_load(_RULES.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def test_the_rules_use_metrics_that_are_exported() -> None:
    known = exported_metrics()
    for rule in _alerts():
        assert any(name in rule["expr"] for name in (*known, "up{")), rule["alert"]
    assert {alert for _, alert in _STORIES.values() if alert} == {rule["alert"] for rule in _alerts()}


@_NEEDS_PROGRAMS
def test_each_rule_fires_for_its_fault_alone(tmp_path: Path) -> None:
    for series, (values, alert) in _STORIES.items():
        inputs = [{"series": series, "values": values}]
        inputs += [] if series.startswith("up") else [{"series": 'up{job="mirror"}', "values": "1x20"}]
        fired = [
            {"eval_time": "20m", "alertname": rule["alert"], "exp_alerts": _expected(rule, series, alert)}
            for rule in _alerts()
        ]
        tests = {
            "rule_files": [str(_RULES)],
            "tests": [{"interval": "1m", "input_series": inputs, "alert_rule_test": fired}],
        }
        file = tmp_path / "tests.yaml"
        file.write_text(yaml.safe_dump(tests))
        command = ["promtool", "test", "rules", str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{series}: {ended.stdout}{ended.stderr}"


def _expected(rule: dict[str, str], series: str, alert: str | None) -> list[dict[str, object]]:
    """The alert of this rule, if it is the one that fires."""
    if rule["alert"] != alert:
        return []
    labels = dict(part.strip().split("=") for part in series.partition("{")[2].rstrip("}").split(","))
    labels = {name: value.strip('"') for name, value in labels.items()}
    annotations: dict[str, str] = rule["annotations"]  # type: ignore[assignment]
    shown = {name: _filled(text, labels) for name, text in annotations.items()}
    return [{"exp_labels": {"severity": "error", **labels}, "exp_annotations": shown}]


def _filled(text: str, labels: dict[str, str]) -> str:
    for name, value in labels.items():
        text = text.replace(f"{{{{ $labels.{name} }}}}", value)
    return text.replace("{{ $value | humanizeDuration }}", "1h 1m 40s")


class _Receiver(BaseHTTPRequestHandler):
    """Keeps the alerts that Alertmanager posts."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.extend(json.loads(body)["alerts"])  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextmanager
def _receiver() -> Iterator[tuple[str, list[dict[str, dict[str, str]]]]]:
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    server.got = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", server.got  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


@_NEEDS_PROGRAMS
@pytest.mark.long(30)
def test_an_alert_of_a_failing_table_arrives_through_alertmanager(tmp_path: Path) -> None:
    """The real programs, with the shipped files; only the times are shorter."""
    port, alerts_port, server_port = free_port(), free_port(), free_port()
    with _receiver() as (url, got), exporting(pytest.fail, port=port):
        record.record_check("shop.orders", "not_failing", passed=False)
        routes = _ALERTMANAGER.read_text().replace("http://127.0.0.1:9099/alerts", url)
        (tmp_path / "alertmanager.yaml").write_text(routes.replace("group_wait: 30s", "group_wait: 1s"))
        rules = _RULES.read_text().replace("for: 15m", "for: 2s")
        (tmp_path / "rules.yaml").write_text(rules)
        (tmp_path / "prometheus.yaml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n"
            f"alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{alerts_port}']}}]}}]}}\n"
            f"scrape_configs:\n  - {{job_name: mirror, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n"
        )
        commands = (
            [
                "prometheus-alertmanager",
                f"--config.file={tmp_path / 'alertmanager.yaml'}",
                f"--storage.path={tmp_path / 'alerts'}",
                f"--web.listen-address=127.0.0.1:{alerts_port}",
                "--cluster.listen-address=",
            ],
            [
                "prometheus",
                f"--config.file={tmp_path / 'prometheus.yaml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{server_port}",
            ],
        )
        programs = [subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for one in commands]
        try:
            deadline = time.monotonic() + 60
            while not got and time.monotonic() < deadline:
                time.sleep(0.5)
        finally:
            for program in programs:
                program.terminate()
            for program in programs:
                program.wait()
    assert [one["labels"]["alertname"] for one in got] == ["MirrorFailing"]
    assert got[0]["annotations"]["summary"] == "shop.orders: the check not_failing fails"
    assert got[0]["annotations"]["next_step"] == "mirror-assets check --table shop.orders --only not_failing"
