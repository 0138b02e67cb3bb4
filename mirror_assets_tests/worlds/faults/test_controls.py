"""Publishers that are not careful: the same harness has to find each of them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Steps
from mirror_assets.zones import Store
from mirror_assets.zones.onelake import clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.requests import Requests
from mirror_assets_tests import figures
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.faults.kinds import Kind
from mirror_assets_tests.worlds.faults.scenarios import SCENARIOS, Scenario, Work, parts_of, staged
from mirror_assets_tests.worlds.faults.trial import Arrival, Broken, Case, Mishap, Sweep
from mirror_assets_tests.worlds.onelake import Operation

FIRST, _, _, STAGING, _, REBUILD = SCENARIOS


def everywhere(sweep: Sweep, kind: Kind, *on: Operation, arrival: Arrival = Arrival.ENDED) -> Iterator[Case]:
    """The kind once at each request of these operations."""
    for at, record in enumerate(sweep.records, 1):
        if record.operation in on:
            yield (Mishap(at, kind, arrival=arrival),)


def given_up(sweep: Sweep) -> Iterator[Case]:
    return ((Mishap(at, Kind.BUSY, lasting=True),) for at in range(1, len(sweep.records) + 1))


@contextmanager
def caught(words: str) -> Iterator[pytest.ExceptionInfo[Broken]]:
    """Fail unless the harness finds fault with what is done here, in these words."""
    with pytest.raises(Broken, match=words) as broken:
        yield broken
    figures.report("careless publishers on the loopback OneLake", "caught", 1)


def _without_staging(bench: Bench, _: Path) -> Work:
    """Uploads each part under its final name, as most publishers do."""
    record = staged(bench, 7, 2)

    def upload(store: Store) -> None:
        assert isinstance(store, OneLakeStore)
        for number, part in enumerate(record.parts, 1):
            data = bench.item.read(record.folder.part(part.name))
            store._clients.file(TABLE.landing_file(number)).upload_data(data, overwrite=True)

    return Work(upload, parts_of(7, 2), 7)


def test_an_upload_to_the_final_name_is_seen_half_done(bench: Bench, tmp_path: Path) -> None:
    with caught("1 was visible before it was whole"):
        Sweep(bench, Scenario("upload to the final name", _without_staging), tmp_path)


def never(_table: TableName, _number: int) -> Steps[bool]:
    yield from ()
    return False


def test_a_rename_whose_outcome_is_not_verified_is_taken_for_lost(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.landing.recover._has_landed", never)
    sweep = Sweep(bench, FIRST, tmp_path)
    with caught("connection dropped after") as broken:
        sweep.run(everywhere(sweep, Kind.UNHEARD, Operation.RENAME))
    assert "neither staged nor landed" in repr(broken.value.__cause__)


def test_a_conflict_with_ourselves_that_is_believed_stops_the_staging(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Requests, "write", Requests.read)
    sweep = Sweep(bench, STAGING, tmp_path)
    with caught("500 after the effect") as broken:
        sweep.run(everywhere(sweep, Kind.FAILED_AFTER, Operation.CREATE, Operation.PUT_BLOB))
    assert "PathExists" in repr(broken.value.__cause__)


def test_retries_of_the_sdk_make_such_conflicts_unseen(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = {"retry_total": 3, "initial_backoff": 0, "increment_base": 0, "random_jitter_range": 0}
    for name, value in impatient.items():
        monkeypatch.setitem(clients._SETTINGS, name, value)
    sweep = Sweep(Bench(bench.server), STAGING, tmp_path)
    with caught("connection dropped after") as broken:
        sweep.run(everywhere(sweep, Kind.UNHEARD, Operation.CREATE, Operation.PUT_BLOB))
    assert "PathExists" in repr(broken.value.__cause__)


def test_a_folder_that_is_deleted_whichever_it_is_takes_a_new_epoch_with_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = OneLakeStore.delete_tree
    monkeypatch.setattr(OneLakeStore, "delete_tree", lambda store, folder, _=None: delete(store, folder))
    sweep = Sweep(bench, REBUILD, tmp_path)
    with caught("delivered late"):
        sweep.run(everywhere(sweep, Kind.HELD, Operation.DELETE))


def forgetful(_: TableName, __: object) -> Steps[None]:
    """A publisher that does not end what was committed."""
    yield from ()


def test_a_publisher_that_does_not_redo_leaves_a_gap(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = Sweep(bench, FIRST, tmp_path)
    monkeypatch.setattr("mirror_assets.landing.recover.redo", forgetful)
    with caught("and all after it") as broken:
        sweep.run(given_up(sweep))
    assert "afterwards" in str(broken.value.__cause__)
