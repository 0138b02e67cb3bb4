"""`mirror-assets alerts test`: each receiver gets a message, and the result is shown."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.landing.problems import ProblemStore
from mirror_assets.zones import LocalStore
from mirror_assets_tests.web import WebReceiver, web_receiver


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebReceiver]:
    with web_receiver() as started:
        monkeypatch.setenv("HOOK_URL", started.url)
        yield started


def config(folder: Path, receivers: str = "one: {url_variable: HOOK_URL}, two: {url_variable: HOOK_URL}") -> str:
    file = folder / "mirror.yaml"
    file.write_text(
        "landing_zone: {path: ./landing}\ntables: {orders: {source: ./orders, keys: [id]}}\n"
        f"alerts: {{receivers: {{{receivers}}}}}\n"
    )
    return str(file)


def test_each_receiver_gets_a_message(tmp_path: Path, web: WebReceiver, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "test", "--config", config(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(one["receiver"], one["passed"], one["error"]) for one in shown] == [
        ("one", True, None),
        ("two", True, None),
    ]
    assert web.titles() == ["Test of mirror_assets"] * 2
    assert "This is a test of the receiver one." in web.messages()[0]


def test_a_receiver_that_does_not_take_it_fails_the_command(
    tmp_path: Path, web: WebReceiver, capsys: pytest.CaptureFixture[str]
) -> None:
    web.statuses = [503]
    assert main(["alerts", "test", "--config", config(tmp_path), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert [one["passed"] for one in shown] == [False, True]
    assert "503" in shown[0]["error"]["message"]
    assert "secret-path" not in str(shown)


def test_one_receiver_may_be_named(tmp_path: Path, web: WebReceiver, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path)
    assert main(["alerts", "test", "--config", file, "--receiver", "two"]) == 0
    assert len(web.bodies) == 1
    assert main(["alerts", "test", "--config", file, "--receiver", "tow"]) == 2
    assert "there is no receiver 'tow'; did you mean 'two'?" in capsys.readouterr().err


def test_missing_receivers_and_variables_are_wrong_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "test", "--config", config(tmp_path, "")]) == 2
    assert "alerts.receivers: list at least one receiver here" in capsys.readouterr().err
    file = config(tmp_path, "one: {url_variable: NOWHERE_SET}")
    assert main(["alerts", "test", "--config", file, "--json"]) == 2
    assert "NOWHERE_SET is not set" in capsys.readouterr().out


def test_a_table_is_muted_for_a_time_and_status_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(tmp_path)
    assert main(["alerts", "mute", "orders", "--for", "4h", "--reason", "it moves", "--config", file]) == 0
    assert re.search(r"orders is muted until 20\d\d-.* UTC \(it moves\)", capsys.readouterr().err)
    main(["status", "--config", file])
    assert "orders is muted until" in capsys.readouterr().err
    assert main(["alerts", "mute", "orders", "--for", "2d", "--config", file, "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["until_ms"] > (time.time() + 86_400) * 1000
    assert len(ProblemStore(LocalStore(tmp_path / "landing")).read().mutes) == 1, "the second replaces the first"
    assert main(["alerts", "unmute", "orders", "--config", file]) == 0
    assert ProblemStore(LocalStore(tmp_path / "landing")).read().mutes == ()


def test_a_table_that_is_not_there_can_not_be_muted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "mute", "order", "--for", "4h", "--config", config(tmp_path)]) == 2
    assert "did you mean 'orders'?" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["alerts", "mute", "orders", "--for", "soon", "--config", config(tmp_path)])
