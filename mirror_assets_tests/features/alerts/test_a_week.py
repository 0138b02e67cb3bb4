"""A week of a mirror, with time moved: every message and its time, and what Dagster's pages say. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest

from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_FULL, STORE_UNAVAILABLE
from mirror_assets_tests.features.alerts.alerting import Deployment
from mirror_assets_tests.web import WebReceiver

pytestmark = [pytest.mark.soak, pytest.mark.long(60)]
_KILLED = "sales.t001: run 17 ended while it worked on the table: it was killed."
_LOST = "sales.t002: the data file part-7 is gone. Next: rebuild the table."


class Week:
    """Runs of `checks` at the times of a story, and each message with its hour."""

    def __init__(self, deployment: Deployment, receiver: WebReceiver) -> None:
        self.deployment, self.receiver, self.began = deployment, receiver, deployment.at
        self.messages: list[tuple[float, str]] = []
        self.failed: list[float] = []
        self.read = 0

    @property
    def titles(self) -> list[str]:
        """The messages that were not taken yet."""
        return [title for _, title in self.messages[self.read :]]

    def taken(self) -> list[str]:
        """Return the messages since the last call."""
        titles, self.read = self.titles, len(self.messages)
        return titles

    @property
    def hour(self) -> float:
        return round((self.deployment.at - self.began) / 3600, 2)

    def checks(self, minutes: float, times: int = 1) -> None:
        """Run `checks` this many times, every so many minutes."""
        for _ in range(times):
            before = len(self.receiver.bodies)
            if not self.deployment.checks(minutes).success:
                self.failed.append(self.hour)
            self.messages += [(self.hour, title) for title in self.receiver.titles()[before:]]

    def shown(self, check: str, table: str) -> tuple[bool, str] | None:
        """What the page of a table's landing says of a check."""
        key = dg.AssetCheckKey(asset_key(AssetKind.LANDING, TableName("sales", table)), check)
        last = RecordedChecks(self.deployment.instance, [key]).last(key)
        return None if last is None else (last.passed, last.description or "")


@contextmanager
def _replaced(monkeypatch: pytest.MonkeyPatch, owner: object, *names: str, by: Callable[..., object]) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for name in names:
            patched.setattr(owner, name, by)
        yield


def _silent(*_: object) -> NoReturn:
    raise RetryError("s3://acme-lake does not respond.", "wait.", code=ErrorCode.SOURCE_UNAVAILABLE)


def _away(_store: object, path: str, *_: object) -> NoReturn:
    raise STORE_UNAVAILABLE(path=path, why="503")


def _full(_store: object, path: str, *_: object) -> NoReturn:
    raise STORE_FULL(path=path)


def _database_away(*_: object, **__: object) -> NoReturn:
    message = "connection refused"
    raise OSError(message)


def _unreachable_source(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three days: one message with the second failed check, reminders, and one end."""
    with _replaced(monkeypatch, DeltaLog, "earliest", "state", by=_silent):
        week.checks(5)
        assert week.titles == []
        week.checks(5)
        week.checks(24 * 60, 3)
    week.checks(5, 2)
    told = "4 tables: check readable fails (source_unavailable)"
    assert week.taken() == [told, f"Still: {told}", f"Still: {told}", f"Still: {told}", f"Ended: {told}"]
    assert week.shown("lag", "t000") == (True, "")


def _unreachable_zone(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour: one message, though no table can be checked."""
    with _replaced(monkeypatch, LocalStore, "head", "list", "read", "read_if_changed", by=_away):
        week.checks(5, 12)
    week.checks(5)
    told = "landing zone: can't be used (store_unavailable)"
    assert week.taken() == [told, f"Ended: {told}"]


def _unreachable_database(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's database fails for one run: no message, and the next run knows all."""
    week.deployment.fail("t003", ErrorCode.LOG_GAP, "sales.t003: version 3 is missing. Next: rebuild it.")
    week.checks(5)
    storage, name = type(week.deployment.instance.event_log_storage), "get_latest_asset_check_execution_by_key"
    with _replaced(monkeypatch, storage, name, by=_database_away):
        week.checks(5)
    week.checks(5)
    told = "sales.t003: check not_failing fails (log_gap)"
    assert week.taken() == [told]
    assert week.shown("not_failing", "t003") == (False, "1 run of sales.t003 failed: version 3 is missing.")
    week.deployment.fix("t003")
    week.checks(5)
    assert week.taken() == [f"Ended: {told}"]
    assert week.shown("not_failing", "t003") == (True, "")


def _killed_run(week: Week) -> None:
    """A run is killed, and the next one succeeds: no message. One that is killed each time is a problem."""
    deployment = week.deployment
    deployment.fail("t001", ErrorCode.RUN_KILLED, _KILLED)
    week.checks(5)
    deployment.fix("t001")
    week.checks(5)
    assert week.taken() == []
    deployment.fail("t001", ErrorCode.RUN_KILLED, _KILLED, times=2)
    week.checks(5, 2)
    deployment.fix("t001")
    week.checks(5)
    told = "sales.t001: check not_failing fails (run_killed)"
    assert week.taken() == [told, f"Ended: {told}"]


def _reload(week: Week) -> None:
    """New definitions, while a table fails: no message."""
    week.deployment.fail("t001", ErrorCode.LOG_GAP, "sales.t001: version 3 is missing. Next: rebuild it.")
    week.checks(5)
    week.deployment.reload()
    week.checks(5, 2)
    week.deployment.fix("t001")
    week.checks(5)
    told = "sales.t001: check not_failing fails (log_gap)"
    assert week.taken() == [told, f"Ended: {told}"]


def _full_disk(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems can't be stored: that is the problem. What is late is reported when there is space again."""
    week.deployment.commit("t000", 30)
    with _replaced(monkeypatch, LocalStore, "create", "replace", by=_full):
        week.checks(5, 4)
    told, late = "landing zone: can't be used (store_full)", "sales.t000: check lag fails"
    assert week.taken() == [told]
    week.checks(5, 2)
    assert week.taken() == [f"Ended: {told}", late]
    week.deployment.land("t000")
    week.checks(5)
    assert week.taken() == [f"Ended: {late}"]


def _failing_rebuild(week: Week) -> None:
    """A data file is lost, and so is the rebuild: one message with its reason, until the table lands."""
    deployment = week.deployment
    deployment.fail("t002", ErrorCode.DATA_FILE_MISSING, _LOST, rebuild="the data file part-7 is gone")
    week.checks(5)
    assert week.taken() == []
    deployment.fail("t002", ErrorCode.DATA_FILE_MISSING, _LOST, times=3)
    week.checks(5, 3)
    told = "sales.t002: check not_failing fails (data_file_missing)"
    assert week.taken() == [told]
    assert "the rebuild fails as well: the data file part-7 is gone." in week.receiver.messages()[-1]
    deployment.fix("t002")
    week.checks(5)
    assert week.taken() == [f"Ended: {told}"]


def _second_mirror(week: Week) -> None:
    """Another Dagster instance mirrors other tables into the same zone: each reports its own."""
    with dg.instance_for_test() as instance:
        deployment = week.deployment
        other = Week(Deployment(deployment.root, instance, tables=1, first=900, at=deployment.at), week.receiver)
        other.deployment.fail("t900", ErrorCode.LOG_GAP, "sales.t900: version 3 is missing. Next: rebuild it.")
        week.checks(5)
        other.checks(5)
        week.checks(5)
        assert week.taken() == []
        other.deployment.fix("t900")
        week.checks(5)
        other.checks(15)
        told = "sales.t900: check not_failing fails (log_gap)"
        assert (week.taken(), other.taken()) == ([], [told, f"Ended: {told}"])


def test_each_problem_of_a_week_is_one_message_and_its_end_another(
    tmp_path: Path, deployment: Deployment, receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    week = Week(Deployment(tmp_path / "week", deployment.instance, tables=4), receiver)
    week.checks(5)
    assert week.taken() == []
    _unreachable_source(week, monkeypatch)
    _unreachable_zone(week, monkeypatch)
    _unreachable_database(week, monkeypatch)
    _killed_run(week)
    _reload(week)
    _full_disk(week, monkeypatch)
    _failing_rebuild(week)
    _second_mirror(week)
    begun = [title for _, title in week.messages if not title.startswith(("Ended: ", "Still: "))]
    errors, database_away = [title for title in begun if "lag" not in title], 1  # the lag is a warning
    assert len(week.failed) == len(errors) + database_away, "each new error fails one run of checks"
    assert not any(one.is_open for one in week.deployment.problems.problems)
    for hour, title in week.messages:
        print(f"{hour:7.2f} h  {title}")  # noqa: T201 with -s, the week is shown
