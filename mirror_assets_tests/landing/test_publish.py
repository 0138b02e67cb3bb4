"""Publishing: what lands, what moves, and what is refused without a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.landing.errors import (
    FOREIGN_FILE,
    SLICE_MISSING,
    SLICE_NOT_CHECKED,
    SLICE_NOT_STAGED,
)
from mirror_assets.landing.format import Column, ComparedVersions, SliceKind
from mirror_assets.landing.names import AttemptFolder
from mirror_assets.landing.publish import Outcome
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.landing.state import CommitPosition
from mirror_assets.zones import LocalStore
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.staging import (
    CHECKS,
    INCARNATION,
    TABLE,
    hex_id,
    land,
    land_next,
    landed_manifest,
    manifest_of,
    position_of,
    stage,
)
from mirror_assets_tests.landing.zone import landed, require_exactly_once, staged_generations
from mirror_assets_tests.zones.counting import CountingStore


def disk(store: LocalStore) -> dict[str, bytes]:
    """Every file with its content."""
    root = Path(store.root)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_first_publication(store: LocalStore) -> None:
    record = stage(store, position_of(store), last=7, parts=3)
    published = land(store, record)
    assert published.outcome is Outcome.LANDED
    assert [(entry.number, entry.etag) for entry in published.entries] == [
        (number, part.etag) for number, part in enumerate(record.parts, start=1)
    ]
    require_exactly_once(store, [(7, 0), (7, 1), (7, 2)], covered=7)
    manifest = landed_manifest(store)
    assert manifest == published.manifest
    assert (manifest.generation, manifest.epoch, manifest.covered_commit_ms) == (1, 1, 2_007)
    assert read_receipt(store, TABLE.landing_file(2)) == manifest.receipt


def test_the_manifest_counts_commits_that_are_unproved_or_read_by_files(store: LocalStore) -> None:
    land_next(store, last=7)
    record = stage(store, position_of(store), last=9)
    verdicts = (record.verdicts[0].model_copy(update={"unproved": 2}), *record.verdicts[1:])
    compared = ComparedVersions(before=7, last=9, files=1, bytes=1, because="the feed was off")
    published = land(store, record.model_copy(update={"verdicts": verdicts, "compared": compared}))
    assert (published.unproved, published.by_files) == (2, 2)
    by_choice = stage(store, position_of(store), last=10)
    by_choice = by_choice.model_copy(update={"compared": compared.model_copy(update={"because": ""})})
    assert (land(store, by_choice).unproved, published.by_files) == (0, 2)
    manifest = landed_manifest(store)
    assert (manifest.unproved_commits, manifest.commits_by_files) == (2, 2)
    assert manifest.landed_rows == 6, "two rows a file, of all generations"


def test_slice_that_is_covered_changes_nothing(store: LocalStore) -> None:
    position = position_of(store)
    ours, theirs = (stage(store, position, last=7, attempt=name) for name in ("ours", "theirs"))
    land(store, ours)
    assert land(store, theirs).outcome is Outcome.COVERED, "of a publisher that was slower"
    land_next(store, last=8)
    land(store, ours)
    before = disk(store)
    for record in (ours, theirs):
        assert land(store, record).outcome is Outcome.COVERED
    assert disk(store) == before


def test_slice_of_an_earlier_epoch_is_void(store: LocalStore) -> None:
    old = stage(store, position_of(store), last=20)
    store.delete_tree(TABLE.scratch)
    land(store, stage(store, CommitPosition(2, hex_id("second epoch"), 1, 1, -1), last=3))
    before = disk(store)
    assert land(store, old).outcome is Outcome.VOID
    assert set(disk(store)) <= set(before)
    require_exactly_once(store, [(3, 0)], covered=3)


def test_gap_names_the_version_that_is_next(store: LocalStore) -> None:
    land_next(store, last=7)
    record = stage(store, CommitPosition(1, INCARNATION, generation=2, first_number=2, covered=9), last=12)
    with raises_row(SLICE_MISSING, match="version 8") as refused:
        land(store, record)
    assert refused.value.facts["wanted_first"] == 8
    require_exactly_once(store, [(7, 0)], covered=7)


@pytest.mark.parametrize(
    "position",
    [
        CommitPosition(1, INCARNATION, generation=3, first_number=2, covered=7),
        CommitPosition(1, INCARNATION, generation=1, first_number=2, covered=7),
        CommitPosition(1, INCARNATION, generation=2, first_number=3, covered=7),
        CommitPosition(1, INCARNATION, generation=2, first_number=1, covered=7),
        CommitPosition(1, INCARNATION, generation=2, first_number=2, covered=6),
        CommitPosition(1, hex_id("other"), generation=2, first_number=2, covered=7),
        CommitPosition(2, INCARNATION, generation=2, first_number=2, covered=7),
        CommitPosition(2, hex_id("second epoch"), generation=2, first_number=2, covered=7),
    ],
)
def test_slice_staged_for_another_position_is_refused(store: LocalStore, position: CommitPosition) -> None:
    land_next(store, last=7)
    record = stage(store, position, last=8, attempt="wrong")
    with raises_row(SLICE_NOT_STAGED):
        land(store, record)
    require_exactly_once(store, [(7, 0)], covered=7)


@pytest.mark.parametrize(("generation", "first_number"), [(2, 1), (1, 2)])
def test_first_slice_must_be_staged_as_the_first(store: LocalStore, generation: int, first_number: int) -> None:
    with raises_row(SLICE_NOT_STAGED):
        land(store, stage(store, CommitPosition(1, INCARNATION, generation, first_number, -1), last=7))
    assert landed(store) == []
    assert manifest_of(store) is None


@pytest.mark.parametrize(
    ("check", "update", "missing", "failed"),
    [
        (0, {"check": "another"}, CHECKS[:1], ()),
        (1, {"passed": False}, (), CHECKS[1:]),
        (0, {"etags": ("another",)}, CHECKS[:1], ()),
    ],
    ids=["a check did not run", "a check failed", "a verdict is for other files"],
)
def test_slice_without_a_passed_verdict_of_every_check_is_refused(
    store: LocalStore, check: int, update: dict[str, object], missing: tuple[str, ...], failed: tuple[str, ...]
) -> None:
    record = stage(store, position_of(store), last=7)
    verdicts = list(record.verdicts)
    verdicts[check] = verdicts[check].model_copy(update=update)
    before = disk(store)
    with raises_row(SLICE_NOT_CHECKED) as refused:
        land(store, record.model_copy(update={"verdicts": tuple(verdicts)}))
    assert (refused.value.facts["missing"], refused.value.facts["failed"]) == (missing, failed)
    assert disk(store) == before
    assert land(store, record).outcome is Outcome.LANDED


@pytest.mark.parametrize("spoil", ["gone", "rewritten"])
def test_part_that_changed_after_its_checks_is_not_committed(store: LocalStore, spoil: str) -> None:
    """Committed, it could never land, and only a rebuild would help; before, staging again is enough."""
    land_next(store, last=7)
    record = stage(store, position_of(store), last=8, parts=2, attempt="spoiled")
    part = store.local_path(AttemptFolder(TABLE, 2, record.attempt).part(record.parts[1].name))
    if spoil == "gone":
        part.unlink()
    else:
        part.write_bytes(b"other rows")
    with raises_row(SLICE_NOT_STAGED):
        land(store, record)
    require_exactly_once(store, [(7, 0)], covered=7)
    land_next(store, last=8, parts=2, attempt="again")
    require_exactly_once(store, [(7, 0), (8, 0), (8, 1)], covered=8)


def test_landing_file_of_another_slice_of_ours_is_foreign_too(store: LocalStore) -> None:
    land_next(store, last=7)
    copy = store.local_path(TABLE.landing_file(1)).read_bytes()
    store.local_path(TABLE.landing_file(2)).write_bytes(copy)
    with raises_row(FOREIGN_FILE):
        land_next(store, last=8)
    assert store.local_path(TABLE.landing_file(2)).read_bytes() == copy


def test_metadata_comes_before_anything_else_in_the_table_folder(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[str] = []
    record = stage(store, position_of(store), last=7)
    create = store.create

    def listen(path: str, data: bytes) -> str:
        created.append(path)
        return create(path, data)

    monkeypatch.setattr(store, "create", listen)
    land(store, record)
    assert created == [TABLE.metadata, TABLE.manifest, TABLE.history(1, 1)]


def test_old_attempts_are_collected_and_newer_ones_kept(store: LocalStore) -> None:
    position = position_of(store)
    stage(store, position, last=7, attempt="given up")
    first = stage(store, position, last=7, attempt="landed")
    ahead = position.after(covered=7, files=1)
    second = stage(store, ahead, last=8, attempt="ahead")
    stage(store, ahead.after(covered=8, files=1), last=9, attempt="further ahead")
    store.local_path(f"{TABLE.scratch}/somebody's").mkdir()
    land(store, first)
    land(store, second)
    assert staged_generations(store) == [2, 3]
    land_next(store, last=9, attempt="last")
    land_next(store, last=10)
    assert staged_generations(store) == [4]
    assert store.folder_identity(f"{TABLE.scratch}/somebody's") is not None
    require_exactly_once(store, [(7, 0), (8, 0), (9, 0), (10, 0)], covered=10)


def test_a_snapshot_in_the_middle_of_an_epoch_is_refused(store: LocalStore) -> None:
    """Its rows are inserts: behind those that have landed they would be doubled."""
    land_next(store, last=7)
    record = stage(store, position_of(store), last=8).model_copy(update={"kind": SliceKind.SNAPSHOT})
    with raises_row(SLICE_NOT_STAGED):
        land(store, record)
    require_exactly_once(store, [(7, 0)], covered=7)


def test_columns_that_ever_landed_stay_known(store: LocalStore) -> None:
    land_next(store, last=7)
    record = stage(store, position_of(store), last=8)
    fewer = record.model_copy(update={"columns": (Column(name="id", type="bigint"), Column(name="new", type="date"))})
    manifest = land(store, fewer).manifest
    assert [column.name for column in manifest.columns] == ["id", "new", "part"]


def test_a_publication_sends_each_request_once(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "zone")
    land_next(store, last=7)
    record = stage(store, position_of(store), last=8)
    store.requested.clear()
    land(store, record)
    # Reads: rebuild record, manifest, keys. Lists: attempts, the slice's parts. Heads: history and last file, of the
    # manifest before. Those of its own commit have no request of their own before they are written and renamed.
    assert store.requested == {"list": 2, "read": 3, "head": 2, "replace": 1, "create": 1, "rename": 1}
