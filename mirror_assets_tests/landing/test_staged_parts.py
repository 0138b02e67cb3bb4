"""Staged parts: read back, judged, and found again."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirror_assets.landing.errors import SLICE_NOT_STAGED, ManifestCorrupt
from mirror_assets.landing.format import CheckVerdict, MarkerCounts, SliceRecord, encode
from mirror_assets.landing.names import AttemptFolder, SliceKey
from mirror_assets.landing.staged_parts import (
    add_verdicts,
    best_attempt,
    clear_refused,
    count_markers,
    fitting_slices,
    inspect_part,
    sha256,
    staged_folders,
    staged_slices,
    take_parts,
)
from mirror_assets.landing.state import CommitPosition
from mirror_assets.markers import ROW_MARKER
from mirror_assets.zones import FileInfo, LocalStore, PathMissing
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.landing.staging import INCARNATION, TABLE, hex_id, stage

FIRST = CommitPosition(1, INCARNATION, 1, 1, -1)
NEXT = CommitPosition(1, INCARNATION, 2, 4, 7)


def write(store: LocalStore, path: str, markers: list[int | None] | None, rows: int = 3, group: int = 2) -> None:
    """A Parquet file with these markers, or without the marker column, in groups of rows."""
    columns = {"id": pa.array(range(rows if markers is None else len(markers)), pa.int64())}
    if markers is not None:
        columns[ROW_MARKER] = pa.array(markers, pa.int32())
    target = store.local_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), target, row_group_size=group)


@pytest.mark.parametrize(
    ("markers", "counts"),
    [
        ([0, 2, 1, 4, 4, 2, 2], MarkerCounts(inserts=1, updates=1, deletes=3, upserts=2)),
        ([], MarkerCounts()),
        ([1], MarkerCounts(updates=1)),
        ([0, 3, None, -1], MarkerCounts(inserts=1)),
        (None, MarkerCounts(inserts=3)),
    ],
)
def test_rows_are_counted_by_marker(store: LocalStore, markers: list[int | None] | None, counts: MarkerCounts) -> None:
    write(store, "s/part.parquet", markers)
    assert count_markers(store, "s/part.parquet") == counts


def test_inspected_part_is_what_is_on_disk(store: LocalStore) -> None:
    write(store, "s/part-00000.parquet", [0, 2, 2])
    part = inspect_part(store, FileInfo("s/part-00000.parquet", 0, ""), "part-00000.parquet")
    data, head = store.local_path("s/part-00000.parquet").read_bytes(), store.head("s/part-00000.parquet")
    assert head is not None
    assert (part.name, part.bytes, part.etag) == ("part-00000.parquet", len(data), head.etag)
    assert part.sha256 == hashlib.sha256(data).hexdigest()
    assert part.markers == MarkerCounts(inserts=1, deletes=2)
    with pytest.raises(PathMissing):
        inspect_part(store, FileInfo("s/none.parquet", 0, ""), "part-00000.parquet")


def test_parts_without_rows_are_skipped_except_the_first_of_a_slice_without_rows(store: LocalStore) -> None:
    folder = AttemptFolder(TABLE, 1, hex_id("one"))
    for number in range(3):
        write(store, folder.part(f"{number:05d}/part-00000.parquet"), [])
    assert [part.name for part in take_parts(store, folder)] == ["00000/part-00000.parquet"]
    write(store, folder.part("00001/part-00000.parquet"), [2])
    assert [part.name for part in take_parts(store, folder)] == ["00001/part-00000.parquet"]


def test_digest_of_a_file_of_many_chunks(store: LocalStore) -> None:
    data = bytes(range(256)) * (40 << 10)
    store.create("s/large", data)
    assert sha256(store, "s/large") == hashlib.sha256(data).hexdigest()


def test_staged_slices_are_the_complete_ones(store: LocalStore) -> None:
    assert staged_slices(store, TABLE) == ()
    second = stage(store, NEXT, last=9, attempt="second")
    first = [stage(store, FIRST, last=7, attempt=name) for name in ("b", "a")]
    incomplete = AttemptFolder(TABLE, 1, hex_id("c"))
    store.create(incomplete.part("part-00000.parquet"), b"")
    store.create(f"{TABLE.scratch}/someone's/slice.json", b"garbage")
    assert staged_slices(store, TABLE) == (first[1], first[0], second)


def test_corrupt_record_is_named(store: LocalStore) -> None:
    folder = AttemptFolder(TABLE, 1, hex_id("bad"))
    store.create(folder.record, b"{}")
    with pytest.raises(ManifestCorrupt, match=folder.path):
        staged_slices(store, TABLE)


def fitting(store: LocalStore, position: CommitPosition, last: int) -> SliceRecord:
    key = SliceKey(position.epoch, position.covered + 1, last)
    return best_attempt(fitting_slices(store, staged_folders(store, TABLE), TABLE, key, position))


def test_fitting_slice_stands_where_the_manifest_stands(store: LocalStore) -> None:
    wrong = (
        CommitPosition(2, INCARNATION, 2, 4, 7),
        CommitPosition(1, INCARNATION, 3, 4, 7),
        CommitPosition(1, INCARNATION, 2, 5, 7),
        CommitPosition(1, hex_id("other epoch"), 2, 4, 7),
    )
    for number, position in enumerate(wrong):
        stage(store, position, last=9, attempt=f"wrong {number}")
    stage(store, NEXT, last=8, attempt="other slice")
    with raises_row(SLICE_NOT_STAGED) as refused:
        fitting(store, NEXT, last=9)
    assert refused.value.facts["key"] == str(SliceKey(1, 8, 9))
    right = stage(store, NEXT, last=9, attempt="right")
    assert fitting(store, NEXT, last=9) == right


def test_first_slice_brings_its_own_incarnation(store: LocalStore) -> None:
    record = stage(store, FIRST, last=7)
    assert fitting(store, CommitPosition(1, hex_id("drawn anew"), 1, 1, -1), last=7) == record


@pytest.mark.parametrize(
    ("attempts", "best"),
    [
        ({"b": "passed", "c": "passed", "a": "passed"}, "c"),
        ({"b": "refused", "a": "passed"}, "a"),
        ({"a": "passed", "b": "unchecked"}, "a"),
        ({"a": "unchecked", "b": "refused"}, "a"),
    ],
    ids=["the newest", "passed before refused", "passed before unchecked", "unchecked before refused"],
)
def test_the_best_of_several_attempts_fits(store: LocalStore, attempts: dict[str, str], best: str) -> None:
    for name, state in attempts.items():
        record = stage(store, NEXT, last=9, attempt=name)
        if state == "refused":
            add_verdicts(store, record, [CheckVerdict(check="row_order", passed=False, etags=record.etags)])
        if state == "unchecked":
            unchecked = record.model_copy(update={"verdicts": ()})
            store.local_path(record.folder.record).write_bytes(encode(unchecked))
    assert fitting(store, NEXT, last=9).attempt == hex_id(best)


def test_refused_attempts_make_room(store: LocalStore) -> None:
    for name in ("a", "b", "c"):
        record = stage(store, NEXT, last=9, attempt=name)
        if name != "c":
            add_verdicts(store, record, [CheckVerdict(check="row_order", passed=False, etags=record.etags)])
    other = stage(store, FIRST, last=7)
    add_verdicts(store, other, [CheckVerdict(check="row_order", passed=False, etags=other.etags)])
    clear_refused(store, staged_folders(store, TABLE, NEXT.generation))
    assert [(kept.generation, kept.attempt) for kept in staged_slices(store, TABLE)] == [
        (FIRST.generation, other.attempt),
        (NEXT.generation, hex_id("c")),
    ]


def test_verdicts_are_added_and_replaced(store: LocalStore) -> None:
    record = stage(store, FIRST, last=7)
    new = CheckVerdict(check="new", passed=True, etags=record.etags)
    failed = record.verdicts[0].model_copy(update={"passed": False, "message": "3 rows"})
    updated = add_verdicts(store, record, [failed, new])
    assert updated.verdicts == (record.verdicts[1], failed, new)
    assert updated.model_copy(update={"verdicts": record.verdicts}) == record
    assert staged_slices(store, TABLE) == (updated,)


def test_verdict_on_a_slice_that_was_collected(store: LocalStore) -> None:
    record = stage(store, FIRST, last=7)
    store.delete_tree(TABLE.scratch)
    with raises_row(SLICE_NOT_STAGED):
        add_verdicts(store, record, record.verdicts)
    assert store.folder_identity(TABLE.scratch) is None


def test_verdicts_of_checks_that_run_side_by_side_are_all_kept(store: LocalStore) -> None:
    record = stage(store, FIRST, last=7)
    gate = threading.Barrier(4)

    def judge(number: int) -> None:
        gate.wait()
        add_verdicts(store, record, [CheckVerdict(check=f"check {number}", passed=True, etags=record.etags)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(judge, range(4)))
    checks = {verdict.check for verdict in staged_slices(store, TABLE)[0].verdicts}
    assert checks == {"key_presence", "row_conservation", *(f"check {number}" for number in range(4))}
