"""The command `alerts test`: sends a test message to each receiver now, and says what came back; without Dagster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.alerts.errors import ReceiverAway, ReceiverRefused
from mirror_assets.alerts.messages import Pages, test_message
from mirror_assets.alerts.receivers import send
from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.output import note, show
from mirror_assets.config import load_config
from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.config.errors import did_you_mean


@dataclass(frozen=True)
class ReceiverTest:
    """What came of a test message: the receiver's answer, or its error and the next step."""

    receiver: str
    type: str
    passed: bool
    answer: str
    seconds: float
    next_step: str = ""
    family: str | None = None


def test(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Test these receivers, or all; it fails when one of them did not take the message."""
    settings = load_config(path).alerts
    unknown = [name for name in names if name not in settings.receivers]
    if unknown or not settings.receivers:
        what = f"no receiver {unknown[0]!r}{did_you_mean(unknown[0], settings.receivers)}" if unknown else "none"
        note(f"error: alerts.receivers has {what}. Next: write it in mirror.yaml, as docs/alerts.md says.")
        return Exit.BAD_SETTING
    found = [_test(settings, name) for name in names or settings.receivers]
    rows = [("pass" if one.passed else "FAIL", one.receiver, one.type, one.answer, one.seconds) for one in found]
    show("Alerts", ("", "receiver", "type", "answer", "seconds"), rows, found, as_json=as_json)
    return exit_code(one.family for one in found if one.family is not None)


def _test(settings: AlertsConfig, name: str) -> ReceiverTest:
    receiver, began = settings.receivers[name], time.monotonic()
    message = test_message(name, time.time_ns() // 1_000_000, Pages(settings.dagster_url, settings.docs_url))
    try:
        answer = send(name, receiver, message)
    except (ReceiverAway, ReceiverRefused) as error:
        seconds = round(time.monotonic() - began, 3)
        return ReceiverTest(name, receiver.type.value, False, error.what, seconds, error.next_step, error.family)  # noqa: FBT003
    return ReceiverTest(name, receiver.type.value, True, answer, round(time.monotonic() - began, 3))  # noqa: FBT003
