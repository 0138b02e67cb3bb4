"""A slow publisher whose table is rebuilt under it: it is told to run again, and spoils nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.landing.errors import RebuildRunning
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild, drop_table_folder
from mirror_assets.landing.staged_parts import staged_slices
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import ListFolder, Read, Rename, Replace, Request, Steps, drive
from mirror_assets.storage import LocalStore, Store
from mirror_assets_tests.landing.epochs import dropping, loading
from mirror_assets_tests.landing.staging import CHECKS, TABLE, hex_id, position_of, stage
from mirror_assets_tests.landing.zone import landed

SECOND_EPOCH = CommitPosition(2, hex_id("second epoch"), generation=1, first_number=1, covered=-1)


def begin_and_stage(store: Store) -> None:
    drive(begin_rebuild(TABLE), store)
    stage(store, SECOND_EPOCH, last=9, attempt="snapshot")


def drop(store: Store) -> None:
    drive(drop_table_folder(TABLE, drive(dropping(TABLE), store)), store)


def rebuild(store: Store) -> None:
    """The whole of a rebuild, to its end."""
    record = drive(loading(TABLE), store)
    drive(publish(TABLE, stage(store, SECOND_EPOCH, last=9, attempt="snapshot"), CHECKS, record.epoch), store)
    drive(advance_rebuild(TABLE, record, RebuildStep.FINISHED), store)


def disturbed(steps: Steps[object], at: Callable[[Request], bool], event: Callable[[], None]) -> Steps[object]:
    """The same steps; the event comes right before the first request that is the one."""
    happened = False
    try:
        request = next(steps)
        while True:
            if not happened and at(request):
                happened = True
                event()
            try:
                reply: object = yield request
            except MirrorError as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as stop:
        assert happened
        return stop.value


@pytest.fixture
def behind(store: LocalStore) -> Steps[object]:
    """A publication of the second slice, about to begin."""
    drive(publish(TABLE, stage(store, position_of(store), last=7), CHECKS), store)
    return publish(TABLE, stage(store, position_of(store), last=8, attempt="b"), CHECKS)


@pytest.mark.parametrize(("event", "left"), [(drop, []), (rebuild, [(1, (9, 0))])])
@pytest.mark.parametrize("at", [Rename, Replace])
def test_what_a_rebuild_cleared_away_is_not_lost(
    store: LocalStore,
    behind: Steps[object],
    at: type[Request],
    event: Callable[[Store], None],
    left: list[tuple[int, tuple[int, int]]],
) -> None:
    """StagedFileLost would call for a person, and for another rebuild."""
    with pytest.raises(RetryError):
        drive(disturbed(behind, lambda request: isinstance(request, at), lambda: event(store)), store)
    assert landed(store) == left


def test_garbage_is_not_what_a_rebuild_stages(store: LocalStore, behind: Steps[object]) -> None:
    """Its snapshot is the first generation of the next epoch, and the publisher knows of the epoch that ends only."""
    collecting = ListFolder(TABLE.scratch)
    with pytest.raises(RebuildRunning):
        drive(disturbed(behind, lambda request: request == collecting, lambda: begin_and_stage(store)), store)
    assert [record.attempt for record in staged_slices(store, TABLE) if record.epoch == 2] == [hex_id("snapshot")]
    assert landed(store) == [(1, (7, 0))]


def test_keys_that_vanish_with_the_table_folder_do_not_differ(store: LocalStore) -> None:
    first = publish(TABLE, stage(store, position_of(store), last=7), CHECKS)

    def reads_back(request: Request) -> bool:
        return request == Read(TABLE.metadata) and store.head(TABLE.metadata) is not None

    with pytest.raises(RetryError):
        drive(disturbed(first, reads_back, lambda: drop(store)), store)
