"""`mirror-assets alerts test`: each receiver gets a message, and what came back is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets_tests.alerts.post import mail_server
from mirror_assets_tests.alerts.web import WebReceiver, web_receiver


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebReceiver]:
    with web_receiver() as started:
        monkeypatch.setenv("HOOK_URL", started.url)
        yield started


def config(folder: Path, receivers: str) -> str:
    file = folder / "mirror.yaml"
    file.write_text(
        "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [id]}}\n"
        f"alerts: {{receivers: {{{receivers}}}}}\n"
    )
    return str(file)


def test_each_receiver_is_tried(tmp_path: Path, web: WebReceiver, capsys: pytest.CaptureFixture[str]) -> None:
    with mail_server() as post:
        mail = f"mail: {{type: email, host: 127.0.0.1, port: {post.port}, security: none, sender: a@b.c, to: [d@e.f]}}"
        hooks = ", ".join(f"{kind}: {{type: {kind}, url_variable: HOOK_URL}}" for kind in ("webhook", "slack", "teams"))
        file = config(tmp_path, f"{hooks}, {mail}")
        assert main(["alerts", "test", "--config", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["receiver"], one["passed"], one["answer"]) for one in told] == [
        ("webhook", True, "HTTP 200 ok"),
        ("slack", True, "HTTP 200 ok"),
        ("teams", True, "HTTP 200 ok"),
        ("mail", True, "127.0.0.1 took it for 1 of 1 addresses"),
    ]
    assert web.bodies[0]["event"] == "test"
    assert post.mails[0]["Subject"] == "[TEST] Test of mirror_assets"


def test_a_receiver_that_does_not_take_it_fails_the_command(
    tmp_path: Path, web: WebReceiver, capsys: pytest.CaptureFixture[str]
) -> None:
    file = config(tmp_path, "one: {type: webhook, url_variable: HOOK_URL}, two: {type: slack, url_variable: HOOK_URL}")
    web.statuses = [503]
    assert main(["alerts", "test", "--config", file]) == 1
    shown = capsys.readouterr().out
    assert "FAIL" in shown
    assert "HTTP 503" in shown
    assert "pass" in shown
    assert "secret-path" not in shown


def test_one_receiver_may_be_named(tmp_path: Path, web: WebReceiver, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path, "one: {type: webhook, url_variable: HOOK_URL}, two: {type: slack, url_variable: HOOK_URL}")
    assert main(["alerts", "test", "--config", file, "--receiver", "two"]) == 0
    assert len(web.bodies) == 1
    assert main(["alerts", "test", "--config", file, "--receiver", "tow"]) == 2
    assert "no receiver 'tow'; did you mean 'two'?" in capsys.readouterr().err


def test_what_is_missing_in_settings_or_environment_is_a_wrong_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["alerts", "test", "--config", config(tmp_path, "")]) == 2
    assert "Next: write it in mirror.yaml" in capsys.readouterr().err
    file = config(tmp_path, "one: {type: slack, url_variable: NOWHERE_SET}")
    assert main(["alerts", "test", "--config", file]) == 2
    assert "NOWHERE_SET is not set" in capsys.readouterr().out
