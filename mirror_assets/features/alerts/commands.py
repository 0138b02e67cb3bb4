"""The commands `alerts`: send a test message to each receiver, and mute a table; without Dagster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mirror_assets.cli.options import CommandGroup, Exit, configured, duration, examples, table

if TYPE_CHECKING:
    from mirror_assets.errors import ErrorRecord


@dataclass(frozen=True)
class ReceiverTest:
    """The result of a test message: passed, or the error."""

    receiver: str
    passed: bool
    error: ErrorRecord | None = None


@click.group(cls=CommandGroup, epilog=examples("alerts test", "alerts mute shop.orders --for 4h"))
def alerts() -> None:
    """Send a test alert; mute a table for a time."""


@alerts.command("test", epilog=examples("alerts test", "alerts test --receiver team --json"))
@click.option("--receiver", "names", multiple=True, metavar="NAME", help="Test only this receiver; may be repeated.")
@configured
def alerts_test(config: Path | None, names: tuple[str, ...], *, as_json: bool) -> Exit:
    """Send a test message to each receiver.

    Exit 1 if a receiver doesn't accept it.
    """
    from mirror_assets.cli.output import note_errors, show
    from mirror_assets.config.errors import Problem, did_you_mean
    from mirror_assets.config.load import load_config
    from mirror_assets.errors import MirrorError
    from mirror_assets.features.alerts.alert_settings import AlertSettings
    from mirror_assets.features.alerts.messages import test_message
    from mirror_assets.features.alerts.receivers import send

    loaded = load_config(config)
    receivers = AlertSettings.of(loaded).alerts.receivers
    unknown = [name for name in names if name not in receivers]
    if unknown or not receivers:
        known = did_you_mean(unknown[0], receivers) if unknown and receivers else ""
        what = f"there is no receiver {unknown[0]!r}{known}" if unknown else "list at least one receiver here"
        raise loaded.invalid((Problem("alerts.receivers", what),))
    found = list[ReceiverTest]()
    for name in names or receivers:
        try:
            send(name, receivers[name], test_message(name, time.time_ns() // 1_000_000))
            found.append(ReceiverTest(name, passed=True))
        except MirrorError as error:
            found.append(ReceiverTest(name, passed=False, error=error.record()))
    rows = [("pass" if one.passed else "FAIL", one.receiver) for one in found]
    show("Alerts", ("", "receiver"), rows, found, as_json=as_json)
    return note_errors(one.error for one in found if one.error)


@alerts.command("mute", epilog=examples('alerts mute shop.orders --for 4h --reason "its source is moved"'))
@table
@click.option("--for", "seconds", type=duration, required=True, metavar="TIME", help="How long, such as 30min, 4h, 2d.")
@click.option("--reason", default="", help="Why; `status` shows it.")
@configured
def alerts_mute(config: Path | None, name: str, seconds: float, reason: str, *, as_json: bool) -> Exit:
    """Send no messages about TABLE for a time.

    A problem that is still open then is reported. A second call replaces the first.
    """
    return _mute(config, name, seconds, reason, as_json=as_json)


@alerts.command("unmute", epilog=examples("alerts unmute shop.orders"))
@table
@configured
def alerts_unmute(config: Path | None, name: str, *, as_json: bool) -> Exit:
    """Send messages about TABLE again."""
    return _mute(config, name, 0.0, "", as_json=as_json)


def _mute(path: Path | None, name: str, seconds: float, reason: str, *, as_json: bool) -> Exit:
    """Mute the table for this many seconds; 0 ends its mute."""
    from mirror_assets.cli.output import note, show_json
    from mirror_assets.config.load import load_config
    from mirror_assets.landing.problems import Mute, ProblemStore

    config = load_config(path)
    subject, now_ms = str(config.table(name).name), time.time_ns() // 1_000_000
    muted = Mute(subject=subject, until_ms=now_ms + round(seconds * 1000), reason=reason)
    ProblemStore(config.zone.open()).change(lambda file: file.with_mute(muted, now_ms))
    if as_json:
        show_json([{"table": subject, "until_ms": muted.until_ms if seconds else None, "reason": reason}])
    else:
        note(str(muted) if seconds else f"{subject} is not muted")
    return Exit.FINE
