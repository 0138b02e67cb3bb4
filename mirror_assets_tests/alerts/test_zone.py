"""The conditions that a landing zone has, and what it costs to read them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.zone import ZoneReader
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.drop import begin_drop
from mirror_assets.landing.failures import record_failure
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets_tests.storage.counting import CountingStore

_NAMES = [TableName("sales", name) for name in ("orders", "items")]
_GAP = "sales.orders: version 3 is missing. Next: rebuild it."


@dataclass
class Zone:
    """A landing zone, and a reader of it."""

    store: CountingStore
    reader: ZoneReader
    is_held: bool = False

    def conditions(self, later: float = 0.0) -> list[Condition]:
        return self.reader.conditions(_NAMES, lambda _: self.is_held, time.time() + later)

    def ids(self, later: float = 0.0) -> list[str]:
        return [one.id for one in self.conditions(later)]

    def fail(
        self,
        code: ErrorCode = ErrorCode.LOG_GAP,
        message: str = _GAP,
        rebuild: str | None = None,
        name: TableName = _NAMES[0],
    ) -> None:
        record_failure(self.store, name, code, message, 1, None, rebuild)

    def asked(self) -> dict[str, int]:
        asked = dict(self.store.requested)
        self.store.requested.clear()
        return asked


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    store = CountingStore(tmp_path)
    return Zone(store, ZoneReader(store))


def test_a_zone_without_failures_costs_two_listings(zone: Zone) -> None:
    assert zone.ids() == []
    assert zone.asked() == {"list": 2}


def test_a_failure_that_is_void_is_read_once(zone: Zone) -> None:
    zone.fail()
    assert zone.ids() == ["table:sales.orders"]
    drive(begin_drop(_NAMES[0]), zone.store)
    assert zone.ids() == []
    zone.asked()
    assert zone.ids() == []
    assert zone.asked() == {"list": 2}


def test_a_rebuild_is_a_condition_while_it_runs_and_for_two_minutes(zone: Zone) -> None:
    record = drive(begin_rebuild(_NAMES[1], "version 3 is gone."), zone.store)
    (found,) = zone.conditions(86_400)
    assert found.id == "rebuild:sales.items"
    assert "a snapshot of the source, because version 3 is gone." in found.text
    drive(advance_rebuild(_NAMES[1], record, RebuildStep.FINISHED), zone.store)
    assert zone.ids(100) == ["rebuild:sales.items"]
    assert zone.ids(200) == []
    zone.asked()
    assert zone.ids(200) == []
    assert zone.asked() == {"list": 2}


def test_a_drop_is_no_rebuild(zone: Zone) -> None:
    drive(begin_drop(_NAMES[0]), zone.store)
    assert zone.ids() == []


def test_a_table_that_needs_a_rebuild_is_on_hold_only_where_a_person_decides(zone: Zone) -> None:
    zone.fail(ErrorCode.DATA_FILE_MISSING, "a file is gone", rebuild="a file is gone")
    assert zone.ids() == []
    zone.is_held = True
    assert zone.ids() == ["held:sales.orders"]


def test_a_first_failure_that_may_pass_starts_nothing(zone: Zone) -> None:
    message = "sales.orders: s3://acme does not answer."
    zone.fail(ErrorCode.SOURCE_UNAVAILABLE, message)
    assert [one.is_passing for one in zone.conditions()] == [True]
    zone.fail(ErrorCode.SOURCE_UNAVAILABLE, message)
    assert [one.is_passing for one in zone.conditions()] == [False]


def test_tables_of_other_configurations_are_left_out(zone: Zone) -> None:
    zone.fail(name=TableName("sales", "others"))
    assert zone.ids() == []
