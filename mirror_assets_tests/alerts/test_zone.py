"""What a landing zone says is wrong, and what it costs to ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.alerts.zone import ZoneLook, ZoneSeen, epochs_seen, with_zone
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.drop import begin_drop
from mirror_assets.landing.failures import Failure, record_failure
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets_tests.storage.counting import CountingStore

_NAMES = [TableName("sales", name) for name in ("orders", "items")]
_GAP = Failure(ErrorCode.LOG_GAP, "sales.orders: version 3 is missing. Next: rebuild it.")


@pytest.fixture
def look(tmp_path: Path) -> ZoneLook:
    return ZoneLook(CountingStore(tmp_path), frozenset(_NAMES))


def _fail(look: ZoneLook, failure: Failure = _GAP, name: TableName = _NAMES[0]) -> None:
    drive(record_failure(name, failure, 1), look.store)


def _found(look: ZoneLook) -> list[str]:
    return list(with_zone({}, look.seen(), {}))


def _asked(look: ZoneLook) -> dict[str, int]:
    assert isinstance(look.store, CountingStore)
    asked = dict(look.store.requested)
    look.store.requested.clear()
    return asked


def test_a_quiet_zone_costs_two_listings(look: ZoneLook) -> None:
    assert _found(look) == []
    assert _asked(look) == {"list": 2}


def test_a_failure_that_counts_no_more_is_read_once(look: ZoneLook) -> None:
    _fail(look)
    assert _found(look) == ["zone:table:sales.orders"]
    drive(begin_drop(_NAMES[0]), look.store)
    assert _found(look) == []
    _asked(look)
    assert _found(look) == []
    assert _asked(look) == {"list": 2}


def test_a_rebuild_is_wrong_as_long_as_it_runs(look: ZoneLook) -> None:
    record = drive(begin_rebuild(_NAMES[1], "version 3 is gone."), look.store)
    assert _found(look) == ["zone:rebuild:sales.items"]
    seen = look.seen()
    (told,) = with_zone({}, seen, {}).values()
    assert told.text.endswith("a snapshot of the source, because version 3 is gone.")
    rebuilt = epochs_seen(seen, {})
    drive(advance_rebuild(_NAMES[1], record, RebuildStep.FINISHED), look.store)
    assert with_zone({}, look.seen(), rebuilt) == {}
    _asked(look)
    assert with_zone({}, look.seen(), rebuilt) == {}
    assert _asked(look) == {"list": 2}


def test_a_rebuild_that_ends_between_two_looks_counts_for_one(look: ZoneLook) -> None:
    drive(begin_drop(_NAMES[0]), look.store)
    record = drive(begin_rebuild(_NAMES[1]), look.store)
    drive(advance_rebuild(_NAMES[1], record, RebuildStep.FINISHED), look.store)
    seen = look.seen()
    assert with_zone({}, seen, None) == {}, "what was there before the first look is history"
    assert list(with_zone({}, seen, {})) == ["zone:rebuild:sales.items"]
    rebuilt = epochs_seen(seen, {})
    assert with_zone({}, look.seen(), rebuilt) == {}
    assert epochs_seen(None, rebuilt) == epochs_seen(ZoneSeen(is_away=True), rebuilt) == rebuilt


def test_a_table_that_only_a_rebuild_helps_is_told_by_that_or_as_held(look: ZoneLook) -> None:
    _fail(look, Failure(ErrorCode.DATA_FILE_MISSING, "a file is gone", rebuild="a file is gone"))
    assert _found(look) == []


def test_tables_of_others_are_none_of_ours(look: ZoneLook) -> None:
    _fail(look, name=TableName("sales", "others"))
    assert _found(look) == []


def test_what_the_zone_said_holds_while_nobody_knows(look: ZoneLook) -> None:
    _fail(look)
    known = with_zone({}, look.seen(), {})
    assert len(known) == 1
    assert with_zone(known, None, {}) == known
    assert with_zone(known, ZoneSeen(), {}) == {}
