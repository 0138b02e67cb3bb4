"""The publish protocol under every schedule: holds as it ships, and breaks when any of its rules is taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from mirror_assets.landing.format import Manifest, SliceRecord, encode
from mirror_assets.landing.names import AttemptFolder, TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild, drop_table_folder
from mirror_assets.landing.state import Footing, Standing, read_manifest
from mirror_assets.landing.steps import Create, DeleteTree, Replace, Steps, drive
from mirror_assets.storage import PathChanged, PathExists
from mirror_assets_tests.landing.minds import Start
from mirror_assets_tests.landing.schedules import Search, Violation
from mirror_assets_tests.landing.staging import (
    CHECKS,
    TABLE,
    footing_of,
    hex_id,
    manifest_of,
    part_bytes,
    receipt_for,
    stage,
)
from mirror_assets_tests.storage.memory import MemoryStore


def publisher(*records: SliceRecord, rebuild_life: int | None = None) -> Start:
    """Publishes these slices one after the other; a restart begins with the first again."""

    def start(_life: int) -> Steps[None]:
        for record in records:
            yield from publish(TABLE, record, CHECKS, rebuild_life)

    return start


def search(zone: MemoryStore, publishers: tuple[Start, ...], records: tuple[SliceRecord, ...]) -> Search:
    """A search in which each slice of the records has to land once, whichever attempt at it wins."""
    contents = {part.etag: (record.key.last, i) for record in records for i, part in enumerate(record.parts)}
    return Search(zone, publishers, contents, expected=tuple(dict.fromkeys(contents.values())))


def first(parts: int, zone: MemoryStore | None = None) -> Search:
    """Two attempts at the first slice."""
    zone = zone or MemoryStore()
    ours, theirs = (stage(zone, footing_of(zone), 7, parts, attempt) for attempt in "ab")
    return search(zone, (publisher(ours), publisher(theirs)), (ours, theirs))


def started(zone: MemoryStore) -> SliceRecord:
    """The zone's first slice, landed."""
    record = stage(zone, footing_of(zone), last=7)
    drive(publish(TABLE, record, CHECKS), zone)
    return record


def following(parts: int, zone: MemoryStore | None = None) -> Search:
    """Two attempts at the second slice."""
    zone = zone or MemoryStore()
    landed = started(zone)
    ours, theirs = (stage(zone, footing_of(zone), 8, parts, attempt) for attempt in "ab")
    return search(zone, (publisher(ours), publisher(theirs)), (landed, ours, theirs))


def stalled(parts: int, zone: MemoryStore | None = None) -> Search:
    """One publishes two slices, while another is still at its attempt at the first of them."""
    zone = zone or MemoryStore()
    landed, footing = started(zone), footing_of(zone)
    ours, theirs = (stage(zone, footing, 8, parts, attempt) for attempt in "ab")
    ahead = stage(zone, footing.after(covered=8, files=parts), last=9, attempt="c")
    return search(zone, (publisher(ours, ahead), publisher(theirs)), (landed, ours, theirs, ahead))


def chained(parts: int, zone: MemoryStore | None = None) -> Search:
    """One publishes a slice, another the slice after it, which was staged ahead."""
    zone = zone or MemoryStore()
    landed, footing = started(zone), footing_of(zone)
    ours = stage(zone, footing, 8, parts, "a")
    ahead = stage(zone, footing.after(covered=8, files=parts), last=9, attempt="c")
    return search(zone, (publisher(ours), publisher(ahead)), (landed, ours, ahead))


def doubled(parts: int) -> Search:
    """A retry of a publication that is still alive: both publish the same attempt."""
    zone = MemoryStore()
    landed = started(zone)
    ours = stage(zone, footing_of(zone), 8, parts, "a")
    return search(zone, (publisher(ours), publisher(ours)), (landed, ours))


def restaged(parts: int, zone: MemoryStore | None = None) -> Search:
    """As doubled, and a repeated request of the stager arrives late: the part is back under its staged name."""
    zone = zone or MemoryStore()
    landed, footing = started(zone), footing_of(zone)
    ours = stage(zone, footing, 8, parts, "a")
    path = AttemptFolder(TABLE, ours.generation, ours.attempt).part(ours.parts[0].name)
    late = Create(path, part_bytes(receipt_for(footing, ours.key, ours.attempt), 0))
    twice = search(zone, (publisher(ours), publisher(ours)), (landed, ours))
    return replace(twice, flying=frozenset({late}))


def rebuilt(parts: int, zone: MemoryStore | None = None) -> Search:
    """Two attempts at a rebuild's snapshot, while requests of the life that ended arrive late in the dropped folder."""
    zone = zone or MemoryStore()
    started(zone)
    ended = manifest_of(zone)
    assert ended is not None
    record = drive(begin_rebuild(TABLE), zone)
    drive(drop_table_folder(TABLE), zone)
    drive(advance_rebuild(TABLE, record, RebuildStep.LOADING), zone)
    footing = Footing(record.life, hex_id("second life"), generation=1, first_number=1, covered=-1)
    ours, theirs = (stage(zone, footing, 9, parts, attempt) for attempt in "ab")
    publishers = tuple(publisher(attempt, rebuild_life=record.life) for attempt in (ours, theirs))
    late = frozenset({Create(TABLE.manifest, encode(ended)), Create(TABLE.history(1, 1), encode(ended))})
    return replace(search(zone, publishers, (ours, theirs)), flying=late, rebuild_life=record.life)


@pytest.mark.parametrize(
    ("case", "losses", "crashes", "worlds"),
    [
        pytest.param(partial(rebuilt, 1), 0, 0, 10_000, id="rebuild, requests of the ended life late"),
        pytest.param(partial(rebuilt, 1), 0, 1, 20_000, id="rebuild, requests of the ended life late, a crash"),
        pytest.param(partial(first, 2), 0, 0, 6_000, id="first slice"),
        pytest.param(partial(following, 2), 0, 0, 7_000, id="next slice"),
        pytest.param(partial(following, 0), 0, 0, 200, id="next slice without parts"),
        pytest.param(partial(stalled, 1), 0, 0, 10_000, id="one is overtaken by two slices"),
        pytest.param(partial(chained, 2), 0, 0, 10_000, id="two slices, one publisher each"),
        pytest.param(partial(doubled, 2), 0, 0, 10_000, id="one attempt, two publishers"),
        pytest.param(partial(restaged, 1), 0, 0, 5_000, id="late create of a staged part"),
        pytest.param(partial(restaged, 2), 0, 0, 50_000, id="late create of a staged part of two"),
        pytest.param(partial(following, 1), 1, 0, 10_000, id="next slice, an answer lost or a request late"),
        pytest.param(partial(following, 1), 0, 1, 10_000, id="next slice, a crash"),
        pytest.param(partial(first, 1), 1, 0, 9_000, id="first slice, an answer lost or a request late"),
    ],
)
def test_every_schedule_lands_each_slice_once(
    case: Callable[[], Search], losses: int, crashes: int, worlds: int
) -> None:
    """`worlds` guards against a search that has become trivial."""
    assert replace(case(), losses=losses, crashes=crashes).run() > worlds


class CarelessSwap(MemoryStore):
    """A store without rule 1: it replaces whatever is there."""

    def replace(self, path: str, data: bytes, etag: str) -> str:
        head = self.head(path)
        return super().replace(path, data, head.etag if head else etag)


class CarelessCreate(MemoryStore):
    """A store without rule 1 for the first commit: it creates over what is there."""

    def create(self, path: str, data: bytes) -> str:
        head = self.head(path)
        return super().replace(path, data, head.etag) if head else super().create(path, data)


class CarelessRename(MemoryStore):
    """A store without rule 3: it moves whatever is at the source."""

    def rename(self, source: str, target: str, etag: str) -> None:
        head = self.head(source)
        super().rename(source, target, head.etag if head else etag)


@pytest.mark.parametrize(
    ("case", "broken"),
    [
        pytest.param(partial(following, 1, CarelessSwap()), "ForeignFile", id="1: commit is compare-and-swap"),
        pytest.param(partial(first, 1, CarelessCreate()), "ForeignFile", id="1: the first commit is put-if-absent"),
        pytest.param(partial(restaged, 2, CarelessRename()), "second time", id="3: a rename names the source's ETag"),
    ],
)
def test_a_store_without_a_condition_breaks_the_protocol(case: Callable[[], Search], broken: str) -> None:
    with pytest.raises(Violation, match=broken):
        case().run()


def no_redo(table: TableName, _rebuild_life: int | None = None) -> Steps[Standing | None]:
    return (yield from read_manifest(table))


def collect_all(attempts: Sequence[AttemptFolder], _manifest: Manifest) -> Steps[None]:
    for folder in attempts:
        yield DeleteTree(folder.path)


def commit_and_believe(table: TableName, manifest: object, standing: Standing | None) -> Steps[None]:
    data = manifest.model_dump_json().encode()  # type: ignore[attr-defined]
    try:
        yield Replace(table.manifest, data, standing.etag) if standing else Create(table.manifest, data)
    except (PathChanged, PathExists):
        return


@pytest.mark.parametrize(
    ("rule", "mutant", "case"),
    [
        pytest.param("recover", no_redo, chained, id="2: redo comes before plan"),
        pytest.param("collect", collect_all, following, id="4: garbage is judged by generation"),
        pytest.param("_commit", commit_and_believe, following, id="a refused commit is read back"),
    ],
)
def test_a_publisher_without_a_rule_breaks_the_protocol(
    monkeypatch: pytest.MonkeyPatch, rule: str, mutant: object, case: Callable[[int], Search]
) -> None:
    sound = case(1)
    monkeypatch.setattr(f"mirror_assets.landing.publish.{rule}", mutant)
    with pytest.raises(Violation):
        sound.run()
