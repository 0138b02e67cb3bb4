"""The commands `alerts`: send a test message to each receiver, and mute a table; without Dagster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.output import note, show, show_json
from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.load import load_config
from mirror_assets.errors import MirrorError
from mirror_assets.features.alerts.alert_settings import AlertSettings, ReceiverConfig
from mirror_assets.features.alerts.messages import test_message
from mirror_assets.features.alerts.receivers import send
from mirror_assets.landing.problems import Mute, ProblemStore


@dataclass(frozen=True)
class ReceiverTest:
    """The result of a test message: passed, or the error and the next step."""

    receiver: str
    passed: bool
    error: str = ""
    next_step: str = ""
    family: str | None = None


@dataclass(frozen=True)
class MutedTable:
    """A table about which no message is sent until a time, in ms since 1970; None: it is not muted."""

    table: str
    until_ms: int | None
    reason: str


def test(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Test these receivers, or all; fails when one of them did not take the message."""
    receivers = AlertSettings.of(load_config(path)).alerts.receivers
    unknown = [name for name in names if name not in receivers]
    if unknown or not receivers:
        what = f"no receiver {unknown[0]!r}{did_you_mean(unknown[0], receivers)}" if unknown else "none"
        note(f"error: alerts.receivers has {what}. Next: write it in mirror.yaml, see docs/alerts.md.")
        return Exit.BAD_SETTING
    found = [_test(name, receivers[name]) for name in names or receivers]
    rows = [("pass" if one.passed else "FAIL", one.receiver, one.error, one.next_step) for one in found]
    show("Alerts", ("", "receiver", "error", "next step"), rows, found, as_json=as_json)
    return exit_code(one.family for one in found if one.family is not None)


def mute(path: Path | None, name: str, seconds: float, reason: str, *, as_json: bool) -> Exit:
    """Mute the table for this many seconds; 0 ends its mute."""
    config = load_config(path)
    table, now_ms = str(config.table(name).name), time.time_ns() // 1_000_000
    muted = Mute(subject=table, until_ms=now_ms + round(seconds * 1000), reason=reason)
    ProblemStore(config.zone.open()).change(lambda file: file.with_mute(muted, now_ms))
    if as_json:
        show_json([MutedTable(table, muted.until_ms if seconds else None, reason)])
    else:
        note(str(muted) if seconds else f"{table} is not muted")
    return Exit.FINE


def _test(name: str, receiver: ReceiverConfig) -> ReceiverTest:
    try:
        send(name, receiver, test_message(name, time.time_ns() // 1_000_000))
    except MirrorError as error:
        return ReceiverTest(name, False, error.what, error.next_step, error.family)  # noqa: FBT003
    return ReceiverTest(name, passed=True)
