"""Every schedule of a drop and whoever else is alive: publishers, a first load, a rebuild, and a run after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from mirror_assets.errors import MirrorError, RebuildError, StopError
from mirror_assets.landing.errors import METADATA_DIFFERS
from mirror_assets.landing.format import SliceRecord, encode
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep, first_epoch, read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import CommitPosition
from mirror_assets.landing.steps import Create, DeleteTree, ListFolder, Steps, drive
from mirror_assets.zones import Store
from mirror_assets_tests import figures
from mirror_assets_tests.landing.drops import NEW_SLICE, drop, mirrored, nothing_left
from mirror_assets_tests.landing.minds import Start
from mirror_assets_tests.landing.mutants import nothing
from mirror_assets_tests.landing.rebuild_cases import rebuild
from mirror_assets_tests.landing.schedules import Case, Search, Violation
from mirror_assets_tests.landing.staging import (
    CHECKS,
    KEYS,
    TABLE,
    hex_id,
    manifest_of,
    position_of,
    stage,
    staging,
)
from mirror_assets_tests.landing.zone import landed
from mirror_assets_tests.zones.memory import MemoryStore

# What may land, in this order, in one epoch or another of these cases.
HISTORIES = (((0, 0), (8, 0), (8, 1)), ((7, 0), (7, 1)), ((NEW_SLICE, 0),))


def publisher(record: SliceRecord) -> Start:
    """Somebody who publishes a slice of the epoch that a drop ends."""

    def start(_epoch: int) -> Steps[None]:
        try:
            yield from publish(TABLE, record, CHECKS)
        except RebuildError:
            return  # it was started again, and finds what it had left behind itself: a rebuild clears that

    return start


def staged(epoch: int, attempt: str) -> Steps[SliceRecord]:
    """A snapshot of this epoch, staged by requests."""
    position = CommitPosition(epoch, hex_id(f"epoch {epoch} {attempt}"), 1, 1, -1)
    return (yield from staging(position, NEW_SLICE, 1, f"{attempt} {epoch}"))


def newcomer(started: int) -> Steps[None]:
    """A run of the table, as `mirror-assets run` does it: a new epoch with a snapshot, where there is none."""
    try:
        if (yield from recover(TABLE)) is None:
            epoch = yield from first_epoch(TABLE)
            record = yield from staged(epoch, f"new {started}")
            yield from publish(TABLE, record, CHECKS)
    except RebuildError:
        yield from rebuild("again", NEW_SLICE)(started)


def alone(steps: Steps[object], store: Store) -> None:
    """Run the steps undisturbed: then there is no reason to fail."""
    try:
        drive(steps, store)
    except MirrorError as error:
        raise AssertionError(f"ended with {error!r}") from error


def dropper(_started: int) -> Steps[None]:
    yield from drop()


def require_ending(store: MemoryStore) -> None:
    """Fail unless a drop that is run again ends, and a run after it lands just one new snapshot."""
    record = drive(read_rebuild(TABLE), store)
    if record is None or record.step is not RebuildStep.DROPPED:
        alone(drop(), store)
        assert nothing_left(store), "something is left"
    require_new(store, "what a drop has left")
    alone(newcomer(98), store)
    alone(newcomer(99), store)
    require_new(store, "what landed after the drop")
    assert len(landed(store)) == 1
    alone(drop(), store)
    assert nothing_left(store), "a second drop has left something"


def require_new(store: MemoryStore, what: str) -> None:
    assert landed(store) in ([], [(1, (NEW_SLICE, 0))]), what
    assert not landed(store) or manifest_of(store) is not None


def search(zone: MemoryStore, *publishers: Start) -> Case:
    return Case(zone, publishers, histories=HISTORIES, next_runs=require_ending)


def beside_a_publisher(parts: int) -> Case:
    """A drop while the next slice is on its way."""
    zone = MemoryStore()
    mirrored(zone, slices=1)
    return search(zone, publisher(stage(zone, position_of(zone), 8, parts, "a")), dropper)


def beside_a_first_load(parts: int) -> Case:
    """A drop while the first slice of the table is on its way, which finds no manifest to tell it of the drop."""
    zone = MemoryStore()
    return search(zone, publisher(stage(zone, position_of(zone), 7, parts, "a")), dropper)


def drop_and_run(started: int) -> Steps[None]:
    """A drop, and a run that begins the table anew when it is done."""
    yield from drop()
    yield from newcomer(started)


def with_a_run_after(case: Callable[[int], Case], parts: int = 1) -> Case:
    """The same, where the table is begun anew while the publisher is still at its slice."""
    found = case(parts)
    return replace(found, publishers=(found.publishers[0], drop_and_run))


def with_a_run_beside(case: Callable[[int], Case]) -> Case:
    """The same, where a third party begins the table anew as soon as it may."""
    found = case(1)
    return replace(found, publishers=(*found.publishers, newcomer))


def beside_a_rebuild() -> Case:
    zone = MemoryStore()
    mirrored(zone, slices=1)
    return search(zone, rebuild("r", NEW_SLICE), dropper)


def of_what_has_just_landed() -> Case:
    """A first load that is dropped when it has landed, while a run has seen no manifest yet."""
    zone = MemoryStore()
    record = stage(zone, position_of(zone), 7)

    def land_and_drop(_started: int) -> Steps[None]:
        yield from publish(TABLE, record, CHECKS)
        yield from drop()

    return search(zone, newcomer, land_and_drop)


def late_requests(*publishers: Start) -> Case:
    """A drop while requests of a first load arrive late, whose sender is dead."""
    zone = MemoryStore()
    ended = mirrored(zone, slices=1)
    late = (
        Create(TABLE.metadata, metadata_bytes(KEYS)),
        Create(TABLE.manifest, encode(ended)),
        Create(TABLE.history(1, 1), encode(ended)),
    )
    return replace(search(zone, *publishers), flying=late)


Bounded = tuple[Callable[[], Case], int, int]
CASES: dict[str, Bounded] = {
    "a slice": (partial(beside_a_publisher, 2), 0, 0),
    "a slice, a crash": (partial(beside_a_publisher, 1), 0, 1),
    "a slice, an answer lost or a request late": (partial(beside_a_publisher, 1), 1, 0),
    "a first load": (partial(beside_a_first_load, 2), 0, 0),
    "a first load, a crash": (partial(beside_a_first_load, 1), 0, 1),
    "a first load, an answer lost or a request late": (partial(beside_a_first_load, 1), 1, 0),
    "a slice, and a run after it": (partial(with_a_run_after, beside_a_publisher), 0, 0),
    "a first load, and a run after it": (partial(with_a_run_after, beside_a_first_load), 0, 0),
    "what has just landed, and a run": (of_what_has_just_landed, 0, 0),
    "a rebuild": (beside_a_rebuild, 0, 0),
    "a rebuild, a crash": (beside_a_rebuild, 0, 1),
    "late requests of a first load, and a run after it": (partial(late_requests, drop_and_run), 0, 0),
}
LARGER: dict[str, Bounded] = {
    "a slice, a run after it, a crash": (partial(with_a_run_after, beside_a_publisher), 0, 1),
    "a slice, and a run beside it": (partial(with_a_run_beside, beside_a_publisher), 0, 0),
    "late requests of a first load, and a run beside it": (partial(late_requests, dropper, newcomer), 0, 0),
}


def searched(name: str, case: Callable[[], Case], losses: int, crashes: int) -> int:
    """How many worlds there are; at least as many as make a search."""
    worlds = Search(replace(case(), losses=losses, crashes=crashes)).run()
    figures.report("every schedule of a drop", "states", worlds, name)
    return worlds


@pytest.mark.parametrize("name", CASES)
def test_every_schedule_of_a_drop_leaves_nothing_of_the_dropped_epoch(name: str) -> None:
    assert searched(name, *CASES[name]) > 1_000, "a search that has become trivial"


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGER)
def test_more_schedules_of_a_drop(name: str) -> None:
    assert searched(name, *LARGER[name]) > 100_000, "a search that has become trivial"


def folder_first(table: TableName, _record: RebuildRecord) -> Steps[None]:
    yield from DeleteTree(table.folder)
    for info in (yield from ListFolder(table.scratch)):
        yield from DeleteTree(info.path)


def any_epoch(*_: object) -> int:
    return 1


def keys_differ(table: str, **_: str) -> StopError:
    """The error for declared keys, although they were deleted with the table folder."""
    return METADATA_DIFFERS(table=table, path=TABLE.metadata, found="nothing", wanted=str(KEYS))


@pytest.mark.parametrize(
    ("rule", "mutant", "case", "broken"),
    [
        (
            "mirror_assets_tests.landing.drops.remove_table",
            folder_first,
            "a slice",
            "something is left|gap before|a drop has left",
        ),
        (
            "mirror_assets.landing.recover._first_that_counts",
            any_epoch,
            "a first load, and a run after it",
            "is being dropped",
        ),
        (
            "mirror_assets.landing.recover._require_same",
            nothing,
            "what has just landed, and a run",
            "the manifest is missing",
        ),
        ("mirror_assets.landing.metadata.TABLE_DROPPED", keys_differ, "a first load", "declared keys can't be changed"),
    ],
)
def test_a_drop_without_a_rule_breaks(
    monkeypatch: pytest.MonkeyPatch, rule: str, mutant: object, case: str, broken: str
) -> None:
    sound, losses, crashes = CASES[case]
    prepared = replace(sound(), losses=losses, crashes=crashes)
    monkeypatch.setattr(rule, mutant)
    with pytest.raises(Violation, match=broken):
        Search(prepared).run()
