"""Events of slices that a run logs, and those that wait in memory while Dagster's storage doesn't respond."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import dagster as dg
import pytest

from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration import table_events
from mirror_assets.orchestration.table_events import EventQueue, TableEvents
from mirror_assets.verify.check_result import CheckResult
from mirror_assets_tests.orchestration.mirrors import assets_of

_LOG = logging.getLogger("mirror_assets_tests.event_queue")


class Database:
    """Records what it is given, unless it is away."""

    def __init__(self) -> None:
        self.is_away = False
        self.recorded: list[int] = []
        self.tries = 0

    def call(self, number: int) -> Callable[[], None]:
        return partial(self._record, number)

    def _record(self, number: int) -> None:
        self.tries += 1
        if self.is_away:
            raise OSError("connection refused")
        self.recorded.append(number)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_events, "_RETRY_SECONDS", 0.0)


def test_events_are_recorded_later_in_order_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    database, queue = Database(), EventQueue(_LOG, keeps_events=True)
    queue.record(database.call(1))
    database.is_away = True
    queue.record(database.call(2), database.call(3))
    queue.record(database.call(4))
    queue.flush()
    assert (database.recorded, queue.is_waiting) == ([1], True)
    database.is_away = False
    queue.flush()
    assert (database.recorded, queue.is_waiting) == ([1, 2, 3, 4], False)
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2, "one when it begins, one when it ends"
    assert "mirroring continues" in warnings[0]
    assert "events were recorded later" in warnings[1]


def test_a_database_that_is_away_is_asked_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_events, "_RETRY_SECONDS", 3600.0)
    database, queue = Database(), EventQueue(_LOG, keeps_events=True)
    database.is_away = True
    for number in range(100):
        queue.record(database.call(number))
    assert database.tries == 1


def test_tables_wait_while_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_events, "_FULL", 2)
    database, queue, goes_on = Database(), EventQueue(_LOG, keeps_events=True), threading.Event()
    database.is_away = True
    queue.record(database.call(1))
    queue.wait_for_room(lambda: False)
    queue.record(database.call(2))
    queue.info("a line that is left out")
    queue.wait_for_room(lambda: True)  # of a run that is stopping

    def work() -> None:
        queue.wait_for_room(lambda: False)
        goes_on.set()

    threading.Thread(target=work, daemon=True).start()
    assert not goes_on.wait(0.2)
    database.is_away = False
    assert goes_on.wait(10)
    assert database.recorded == [1, 2]


@pytest.mark.parametrize("defect", [ValueError("bad metadata"), dg.DagsterInvariantViolationError("no such asset")])
def test_an_event_that_is_wrong_itself_holds_up_no_other(defect: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def wrong() -> None:
        raise defect

    database, queue = Database(), EventQueue(_LOG, keeps_events=True)
    queue.record(wrong, database.call(1))
    assert database.recorded == [1]
    assert "can't be recorded" in caplog.text


def test_a_run_that_ends_without_its_database_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table_events, "_END_SECONDS", 0.1)
    database, queue = Database(), EventQueue(_LOG, keeps_events=True)
    database.is_away = True
    queue.record(database.call(1))
    queue.close()
    assert "the run ends while Dagster's storage does not respond: 1 events" in caplog.text


def test_a_short_run_fails_at_once() -> None:
    database, queue = Database(), EventQueue(_LOG)
    database.is_away = True
    with pytest.raises(OSError, match="refused"):
        queue.record(database.call(1))
    database.is_away = False
    queue.record(database.call(2))
    assert database.recorded == [2]


def test_a_run_keeps_no_event_in_memory() -> None:
    asset, kept = dg.AssetKey("orders"), list[bool]()

    @dg.op
    def mirror(context: dg.OpExecutionContext) -> None:
        events = TableEvents(context, assets_of([TableName(None, "orders")]))
        for _ in range(3):
            events.log([dg.AssetMaterialization(asset), dg.AssetCheckEvaluation(asset, "row_order", passed=True)])
        kept.append(context.has_events())

    @dg.job
    def run() -> None:
        mirror()

    with dg.DagsterInstance.ephemeral() as instance:
        assert run.execute_in_process(instance=instance).success
        recorded = instance.fetch_materializations(asset, limit=10).records
        checked = instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(asset, "row_order"))
    assert kept == [False]
    assert len(recorded) == 3
    assert checked is not None


def test_a_result_says_that_it_holds_for_the_later_slices_of_the_run() -> None:
    """Dagster applies it to all that the run materializes: the page would name an older slice than the newest."""
    name = TableName(None, "orders")
    processed = SimpleNamespace(
        record=SimpleNamespace(slice=SliceKey(1, 4, 6)),
        results=(CheckResult("row_order"), CheckResult("key_presence", ("a key is NULL",))),
        published=SimpleNamespace(manifest=SimpleNamespace(loading=None)),
    )

    @dg.op
    def mirror(context: dg.OpExecutionContext) -> None:
        events = TableEvents(context, assets_of([name]))
        events.checked(SimpleNamespace(name=name), processed)  # type: ignore[arg-type]

    @dg.job
    def run() -> None:
        mirror()

    with dg.DagsterInstance.ephemeral() as instance:
        entries = instance.all_logs(run.execute_in_process(instance=instance).run_id)
    events = [entry.dagster_event for entry in entries if entry.dagster_event]
    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    checks = [event.asset_check_evaluation_data for event in events if event.event_type is kind]
    assert {one.check_name: one.description for one in checks} == {
        "row_order": "slice 1.4-6, and each later slice of this run before it lands",
        "key_presence": "slice 1.4-6: a key is NULL",
    }
