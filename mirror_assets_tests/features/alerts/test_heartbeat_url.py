"""The heartbeat URL is called over HTTP on loopback; nothing of it can fail an evaluation or leak the URL."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from mirror_assets.features.alerts.alert_settings import AlertsConfig
from mirror_assets.features.alerts.heartbeat_url import call_heartbeat

_SETTINGS = AlertsConfig.model_validate({"heartbeat_url_variable": "BEAT_URL"})


class _Answering(BaseHTTPRequestHandler):
    """Answers with the status in the path."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Location", "/elsewhere/200")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def service() -> Iterator[tuple[str, list[str]]]:
    server = HTTPServer(("127.0.0.1", 0), _Answering)
    server.asked = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/a-secret-path", server.asked  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


def test_the_url_is_called_once(service: tuple[str, list[str]], caplog: pytest.LogCaptureFixture) -> None:
    url, asked = service
    call_heartbeat(_SETTINGS, {"BEAT_URL": f"{url}/200"})
    assert asked == ["/a-secret-path/200"]
    assert caplog.records == []
    call_heartbeat(AlertsConfig(), {"BEAT_URL": f"{url}/200"})
    assert len(asked) == 1, "no variable is set"


@pytest.mark.parametrize("answer", ["500", "302"])
def test_a_service_that_refuses_or_redirects_is_logged_without_the_url(
    service: tuple[str, list[str]], caplog: pytest.LogCaptureFixture, answer: str
) -> None:
    url, asked = service
    call_heartbeat(_SETTINGS, {"BEAT_URL": f"{url}/{answer}"})
    assert len(asked) == 1, "a redirect is not followed"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "BEAT_URL" in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "file:///etc/passwd", "http://beats.example/x", "http://127.0.0.1:9/x", "http://[/"]
)
def test_a_url_that_can_not_be_called_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    call_heartbeat(_SETTINGS, {"BEAT_URL": url})
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
