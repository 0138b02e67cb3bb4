"""Receivers that take messages, and receivers that don't, over HTTP and TLS on loopback; no secret in any error."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mirror_assets.errors import RetryError, SettingError
from mirror_assets.features.alerts.alert_settings import ReceiverConfig
from mirror_assets.features.alerts.errors import AlertsCode
from mirror_assets.features.alerts.messages import Message
from mirror_assets.features.alerts.receivers import call_heartbeat, send
from mirror_assets.landing.problems import MessageKind, Severity
from mirror_assets_tests.features.alerts.pagerduty import LoopbackPagerDuty
from mirror_assets_tests.web import WebReceiver, web_receiver

_HOOK = ReceiverConfig.model_validate({"url_variable": "HOOK_URL"})
_KEY = "0123456789abcdef0123456789abcdef"


def message(kind: MessageKind = MessageKind.BEGUN, severity: Severity = Severity.ERROR) -> Message:
    return Message(
        incident="17-abc",
        kind=kind,
        severity=severity,
        title="sales.t1: can't be mirrored <b>&",
        body="The store refuses.\nNext: renew the token.",
        links=(("Open in Dagster", "https://dagster.example/runs/1"),),
        is_last=kind in (MessageKind.ENDED, MessageKind.TEST),
    )


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    with web_receiver() as started:
        yield started


@pytest.fixture
def pagerduty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackPagerDuty]:
    with LoopbackPagerDuty(tmp_path, _KEY) as started:
        monkeypatch.setenv("SSL_CERT_FILE", str(started.ca))
        yield started


def _pager_url(pagerduty: LoopbackPagerDuty, key: str = _KEY) -> str:
    return f"pagerduty://{key}@{pagerduty.url.removeprefix('https://')}"


def test_a_webhook_gets_title_text_and_severity(web: WebReceiver) -> None:
    for one in (message(), message(severity=Severity.WARN), message(MessageKind.ENDED)):
        send("hook", _HOOK, one, {"HOOK_URL": web.url})
    assert web.bodies[0]["title"] == "sales.t1: can't be mirrored <b>&"
    assert web.bodies[0]["message"] == "The store refuses.\nNext: renew the token."
    assert [body["type"] for body in web.bodies] == ["failure", "warning", "success"]


def test_a_token_in_the_url_is_sent_as_a_header(web: WebReceiver) -> None:
    send("hook", _HOOK, message(), {"HOOK_URL": f"{web.url}?+Authorization=Bearer%20the-token"})
    assert web.headers[0]["Authorization"] == "Bearer the-token"


@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 503])
def test_a_receiver_that_does_not_take_it_is_named_without_its_url(web: WebReceiver, status: int) -> None:
    web.statuses = [status]
    with pytest.raises(RetryError, match=f"the receiver hook did not take the message: .*{status}") as caught:
        send("hook", _HOOK, message(), {"HOOK_URL": web.url})
    assert caught.value.code is AlertsCode.RECEIVER_REFUSED
    assert "secret-path" not in str(caught.value)


def test_a_receiver_that_does_not_answer_is_named() -> None:
    with pytest.raises(RetryError, match="the receiver hook did not take the message"):
        send("hook", _HOOK, message(), {"HOOK_URL": "json://127.0.0.1:1/secret-path"})


@pytest.mark.parametrize(
    "url",
    [
        "json://hooks.acme.example/x?+Authorization=Bearer%20the-token",
        "JSON://10.0.0.1/x",
        "json://localhost.acme.example/x",
        "mailto://me:secret@mail.acme.example",
        "form://hooks.acme.example",
    ],
)
def test_a_url_without_tls_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(SettingError, match="its URL is not encrypted") as caught:
        send("hook", _HOOK, message(), {"HOOK_URL": url})
    assert "the-token" not in str(caught.value)
    assert caught.value.code is AlertsCode.RECEIVER_REFUSED


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "the environment variable HOOK_URL is not set"),
        ("pigeon://coop", "Apprise doesn't know this kind of URL"),
        ("http://hooks.acme.example/x?token=the-token", "Apprise doesn't know this kind of URL"),
        ("slack://", "a part of it is missing"),
    ],
)
def test_a_url_that_can_not_be_used_is_a_wrong_setting(url: str, says: str) -> None:
    with pytest.raises(SettingError, match="the receiver hook can't be used") as caught:
        send("hook", _HOOK, message(), {"HOOK_URL": url})
    assert says in caught.value.what
    assert "the-token" not in str(caught.value)


def test_pagerduty_triggers_and_resolves_by_the_incident(pagerduty: LoopbackPagerDuty) -> None:
    variables = {"HOOK_URL": _pager_url(pagerduty)}
    for event in (MessageKind.BEGUN, MessageKind.REMINDER, MessageKind.ENDED):
        send("pager", _HOOK, message(event), variables)
    events = [(event["event_action"], event["dedup_key"]) for event in pagerduty.events]
    assert events == [("trigger", "17-abc"), ("trigger", "17-abc"), ("resolve", "17-abc")]
    assert pagerduty.events[0]["payload"] == {
        "summary": "sales.t1: can't be mirrored <b>&",
        "source": "mirror_assets",
        "severity": "error",
        "custom_details": {"message": "The store refuses.\nNext: renew the token."},
    }
    assert pagerduty.events[0]["links"] == [{"href": "https://dagster.example/runs/1", "text": "Open in Dagster"}]
    send("pager", _HOOK, message(MessageKind.TEST), variables)
    assert [event["event_action"] for event in pagerduty.events[3:]] == ["trigger", "resolve"]


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
def test_pagerduty_that_does_not_take_it_is_left_at_once(pagerduty: LoopbackPagerDuty, status: int) -> None:
    pagerduty.statuses, began = [status], time.monotonic()
    with pytest.raises(RetryError, match="the receiver pager did not take the message") as caught:
        send("pager", _HOOK, message(), {"HOOK_URL": _pager_url(pagerduty)})
    assert time.monotonic() - began < 2
    assert _KEY not in str(caught.value)


def test_pagerduty_that_is_not_trusted_or_not_there_gets_nothing(
    pagerduty: LoopbackPagerDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    for url in (_pager_url(pagerduty), f"pagerduty://{_KEY}@127.0.0.1:1"):
        with pytest.raises(RetryError, match="the receiver pager did not take the message"):
            send("pager", _HOOK, message(), {"HOOK_URL": url})
    assert pagerduty.events == []


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
    call_heartbeat("BEAT_URL", {"BEAT_URL": f"{url}/200"})
    assert asked == ["/a-secret-path/200"]
    assert caplog.records == []


@pytest.mark.parametrize("answer", ["500", "302"])
def test_a_service_that_refuses_or_redirects_is_logged_without_the_url(
    service: tuple[str, list[str]], caplog: pytest.LogCaptureFixture, answer: str
) -> None:
    url, asked = service
    call_heartbeat("BEAT_URL", {"BEAT_URL": f"{url}/{answer}"})
    assert len(asked) == 1, "a redirect is not followed"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "BEAT_URL" in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "file:///etc/passwd", "http://beats.example/x", "http://127.0.0.1:9/x", "http://[/"]
)
def test_a_url_that_can_not_be_called_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    call_heartbeat("BEAT_URL", {"BEAT_URL": url})
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
