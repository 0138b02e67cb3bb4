"""What a receiver answers, and what becomes of it: delivered, tried again, or refused; no secret in any message."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from mirror_assets.alerts.couriers import Couriers
from mirror_assets.alerts.errors import ReceiverAway, ReceiverRefused
from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.outbox import Outcome, queued, ready, settled
from mirror_assets.alerts.receivers import send
from mirror_assets.config.alerts import ReceiverConfig
from mirror_assets_tests.alerts.lettered import AT, hook, letter
from mirror_assets_tests.alerts.post import PASSWORD, USER, mail_server
from mirror_assets_tests.alerts.web import WebReceiver, web_receiver


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    with web_receiver() as started:
        yield started


def test_a_webhook_gets_the_message_and_its_token(web: WebReceiver) -> None:
    receiver = hook(token_variable="TOKEN")  # noqa: S106 a variable's name
    environment = {"HOOK_URL": web.url, "TOKEN": "the-token-of-the-hook"}
    assert send("hook", receiver, letter(), environment) == "HTTP 200 ok"
    assert web.bodies[0]["code"] == "store_denied"
    assert web.headers[0]["Authorization"] == "Bearer the-token-of-the-hook"
    assert web.headers[0]["Content-Type"] == "application/json; charset=utf-8"


def test_pagerduty_triggers_and_resolves_by_the_key_of_the_incident(web: WebReceiver) -> None:
    pager = ReceiverConfig.model_validate({"type": "pagerduty", "key_variable": "KEY", "url": web.url})
    for told in (Told.BEGUN, Told.ENDED):
        send("pager", pager, letter(told), {"KEY": "integration-key"})
    assert [(body["event_action"], body["dedup_key"]) for body in web.bodies] == [("trigger", "i1"), ("resolve", "i1")]
    assert {body["routing_key"] for body in web.bodies} == {"integration-key"}
    send("pager", pager, letter(Told.TEST, incident="t"), {"KEY": "integration-key"})
    assert [body["event_action"] for body in web.bodies[2:]] == ["trigger", "resolve"]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_a_busy_receiver_is_asked_again(web: WebReceiver, status: int) -> None:
    web.statuses, web.answer_headers = [status], {"Retry-After": "40"}
    with pytest.raises(ReceiverAway, match=f"HTTP {status} not now") as caught:
        send("hook", hook(), letter(), {"HOOK_URL": web.url})
    assert caught.value.pause == 40.0


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410])
def test_a_refusal_names_the_receiver_and_not_its_address(web: WebReceiver, status: int) -> None:
    web.statuses = [status]
    with pytest.raises(ReceiverRefused, match=rf"receiver hook refuses: HTTP {status}") as caught:
        send("hook", hook(), letter(), {"HOOK_URL": web.url})
    assert "secret-path" not in str(caught.value)


def test_a_receiver_that_hangs_is_left_after_its_timeout(web: WebReceiver) -> None:
    web.late_seconds = 5
    began = time.monotonic()
    with pytest.raises(ReceiverAway, match="no answer within"):
        send("hook", hook(timeout_seconds=0.3), letter(), {"HOOK_URL": web.url})
    assert time.monotonic() - began < 2


def test_a_receiver_that_is_away_tells_no_secret() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/services/secret-path"
        with pytest.raises(ReceiverAway, match="no connection") as caught:
            send("hook", hook(), letter(), {"HOOK_URL": url})
    assert "secret-path" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "why"), [("", "HOOK_URL is not set"), ("no-address", "no http address"), ("http://[::1", "no http address")]
)
def test_a_variable_that_is_not_fit_is_named(url: str, why: str) -> None:
    with pytest.raises(ReceiverRefused, match=why):
        send("hook", hook(), letter(), {"HOOK_URL": url})


def test_an_answer_that_does_not_end_confirms_by_its_status(web: WebReceiver) -> None:
    """Sent again, the message would arrive twice, and again each quarter of an hour."""
    web.stuck_seconds = 3
    assert send("hook", hook(timeout_seconds=0.3), letter(), {"HOOK_URL": web.url}).startswith("HTTP 200")
    assert len(web.bodies) == 1


def test_an_answer_that_repeats_the_address_tells_no_secret(web: WebReceiver) -> None:
    web.statuses, web.says = [404], "no such hook: PATH"
    with pytest.raises(ReceiverRefused, match=r"no such hook: \$\{HOOK_URL\}"):
        send("hook", hook(), letter(), {"HOOK_URL": web.url})


def test_a_long_answer_is_cut(web: WebReceiver) -> None:
    web.says = "x" * 1_000_000
    assert len(send("hook", hook(), letter(), {"HOOK_URL": web.url})) < 250


def test_a_redirect_is_refused_and_not_followed(web: WebReceiver) -> None:
    web.statuses, web.answer_headers = [307], {"Location": web.url}
    with pytest.raises(ReceiverRefused, match="HTTP 307"):
        send("hook", hook(), letter(), {"HOOK_URL": web.url})
    assert web.bodies == []


def test_the_token_is_sent_whatever_a_netrc_says(
    web: WebReceiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    send("hook", hook(token_variable="TOKEN"), letter(), {"HOOK_URL": web.url, "TOKEN": "the-token"})  # noqa: S106
    assert web.headers[0]["Authorization"] == "Bearer the-token"


# Mails.


def mail(port: int, **settings: object) -> ReceiverConfig:
    given = {"host": "127.0.0.1", "port": port, "sender": "Mirror <mirror@acme.example>", "to": ["data@acme.example"]}
    return ReceiverConfig.model_validate({"type": "email", **given, **settings})


def test_a_mail_arrives() -> None:
    with mail_server() as server:
        answer = send("mail", mail(server.port, security="none"), letter(), {})
    assert answer == "127.0.0.1 took it for 1 of 1 addresses"
    assert server.mails[0]["Subject"] == "[ERROR] 12 tables: can't be mirrored (store_denied)"
    assert server.to == [["data@acme.example"]]


def test_some_addresses_may_be_refused() -> None:
    with mail_server() as server:
        two = mail(server.port, security="none", to=["nobody@acme.example", "data@acme.example"])
        assert send("mail", two, letter(), {}).endswith("took it for 1 of 2 addresses; not for nobody@acme.example")
        none = mail(server.port, security="none", to=["nobody@acme.example"])
        with pytest.raises(ReceiverRefused, match="550 no such user"):
            send("mail", none, letter(), {})


def test_a_mail_server_that_is_busy_is_asked_again() -> None:
    with mail_server() as server:
        server.answers = ["451 greylisted", "554 no"]
        for error in (ReceiverAway, ReceiverRefused):
            with pytest.raises(error, match=r"45|55"):
                send("mail", mail(server.port, security="none"), letter(), {})
    with pytest.raises(ReceiverAway, match="ConnectionRefusedError"):
        send("mail", mail(server.port, security="none"), letter(), {})


def test_a_mail_that_was_taken_is_sent_whatever_comes_after() -> None:
    with mail_server() as server:
        server.farewell = "421 too busy to say goodbye"
        assert send("mail", mail(server.port, security="none"), letter(), {}).endswith("took it for 1 of 1 addresses")
    assert len(server.mails) == 1


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_who_signs_in_does_so_over_a_connection_whose_certificate_is_trusted(
    security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, bundle = trustme.CA(), tmp_path / "ca.pem"
    with mail_server(authority, implicit=security == "tls") as server:
        receiver = mail(server.port, security=security, user=USER, password_variable="MAIL_PASSWORD")  # noqa: S106
        with pytest.raises(ReceiverRefused, match=r"certificate of 127\.0\.0\.1 is not trusted"):
            send("mail", receiver, letter(), {"MAIL_PASSWORD": PASSWORD})
        authority.cert_pem.write_to_path(bundle)
        monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
        with pytest.raises(ReceiverRefused, match="does not let mirror sign in") as caught:
            send("mail", receiver, letter(), {"MAIL_PASSWORD": "another one"})
        assert "another one" not in str(caught.value)
        with pytest.raises(ReceiverRefused, match="such a user or password"):
            send("mail", receiver, letter(), {"MAIL_PASSWORD": "pässwort"})
        send("mail", receiver, letter(), {"MAIL_PASSWORD": PASSWORD})
    assert len(server.mails) == 1


# Beside the tick.


def test_a_receiver_that_hangs_keeps_no_other_waiting() -> None:
    hanging, arrived = threading.Event(), list[str]()

    def sending(name: str, _receiver: ReceiverConfig, message: object) -> str:
        if name == "hangs":
            hanging.wait(10)
        arrived.append(name)
        return str(message)

    receivers, couriers = {"hangs": hook(timeout_seconds=0.2), "works": hook()}, Couriers(sending)
    outbox = queued((), [letter()], receivers)
    couriers.begin(ready(outbox, receivers, AT), receivers)
    outcomes = couriers.outcomes(0.3)
    assert [outcome.receiver for outcome in outcomes] == ["works"]
    outbox = settled(outbox, outcomes, AT)
    couriers.begin(ready(outbox, receivers, AT), receivers)
    assert arrived == ["works"], "the message is still on its way"
    time.sleep(1.0)
    couriers.begin(ready(outbox, receivers, AT), receivers)
    given_up = couriers.outcomes(0.0)
    assert [(outcome.receiver, outcome.why) for outcome in given_up] == [
        ("hangs", "it began to answer and did not end")
    ]
    assert settled(outbox, given_up, AT)[0].attempts == 1
    hanging.set()


def test_an_answer_that_is_late_counts_at_the_next_look(web: WebReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_URL", web.url)
    web.late_seconds = 0.6
    receivers, couriers = {"hook": hook()}, Couriers()
    outbox = queued((), [letter()], receivers)
    couriers.begin(ready(outbox, receivers, AT), receivers)
    assert couriers.outcomes(0.1) == []
    couriers.begin(ready(outbox, receivers, AT), receivers)
    assert couriers.outcomes(5) == [Outcome("hook", letter().id)]
    assert len(web.bodies) == 1


def test_a_receiver_that_is_away_is_not_asked_for_each_message() -> None:
    asked: list[str] = []

    def sending(name: str, _receiver: ReceiverConfig, _message: object) -> str:
        asked.append(name)
        raise ReceiverAway(name, "no connection")

    receivers, couriers = {"hook": hook()}, Couriers(sending)
    outbox = queued((), [letter(incident=f"i{n}") for n in range(50)], receivers)
    couriers.begin(ready(outbox, receivers, AT), receivers)
    assert len(couriers.outcomes(5)) == len(asked) == 1
