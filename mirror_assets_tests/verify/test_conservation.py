"""No row of the log is lost, doubled or invented; wrong statistics and doubled observations block nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mirror_assets.landing.format import ChangeCounts, MarkerCounts, ScannedRows, SliceKind, SliceRecord, StagedPart
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import next_position
from mirror_assets.source.log import DeltaLog
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.conservation import CountedRows, ScannedCounts, SliceRows, row_conservation
from mirror_assets.verify.ledger import weight
from mirror_assets.verify.ledger_log import version_ledger
from mirror_assets_tests.landing.staging import INCARNATION, hex_id, new_record
from mirror_assets_tests.source.handmade import file_action
from mirror_assets_tests.verify.handmade_table import HandmadeTable


class Recount:
    """A second count, as a test says; it says how often it was asked for."""

    def __init__(self, read: Mapping[int, CountedRows], kept: Mapping[int, CountedRows] | None = None) -> None:
        self.counts, self.asked = ScannedCounts(read, read if kept is None else kept), 0

    def count(self) -> ScannedCounts:
        """Return what the test says."""
        self.asked += 1
        return self.counts


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    """Ten rows in version 0; version 1 adds four, and version 2 replaces the ten by nine of them."""
    made = HandmadeTable(tmp_path)
    made.commit(file_action("add"))
    made.commit(file_action("add", "b.parquet", records=4))
    made.commit(file_action("remove"), file_action("add", "c.parquet", records=9))
    return made


def _record(
    markers: MarkerCounts,
    read: ChangeCounts,
    *,
    first: int = 1,
    last: int = 2,
    kind: SliceKind = SliceKind.CHANGES,
    scanned: ScannedRows | None = None,
    where: str | None = None,
) -> SliceRecord:
    position = next_position(None, epoch=1, incarnation=INCARNATION)
    part = StagedPart(name="part-00000.parquet", etag="x", bytes=1, sha256=None, markers=markers)
    record = new_record(position, SliceKey(1, first, last), hex_id("one"), (part,))
    return record.model_copy(update={"read": read, "kind": kind, "scanned": scanned, "where": where})


# Versions 1 and 2 of the table, of which the nine copied rows land as deletes and inserts.
_MARKERS = MarkerCounts(inserts=13, deletes=10)
_READ = ChangeCounts(insert=13, delete=10)
_WEIGHTED = 4 * weight(1) - 1 * weight(2)
_SCANNED = ScannedRows(new=13, old=10, weighted=_WEIGHTED)
_COUNTED = {1: CountedRows(new=4), 2: CountedRows(new=9, old=10)}


def _doubled(scanned: ScannedRows) -> ScannedRows:
    return ScannedRows(**{name: 2 * number for name, number in scanned.model_dump().items()})


def _check(table: HandmadeTable, record: SliceRecord, recount: Recount | None = None, **kind: bool) -> CheckResult:
    ledger = table.ledger(record.slice.first, record.slice.last)
    return row_conservation(SliceRows(record, ledger, **kind), None if recount is None else recount.count)


@pytest.mark.parametrize("scanned", [None, _SCANNED])
def test_a_right_slice_passes_without_a_second_count(table: HandmadeTable, scanned: ScannedRows | None) -> None:
    recount = Recount({})
    result = _check(table, _record(_MARKERS, _READ, scanned=scanned), recount)
    assert (result.problems, result.warning, recount.asked) == ((), "", 0)
    assert result.metadata == {"read": 23, "written": 23, "commits_proved": 2, "commits_unproved": 0}


def test_rows_that_were_not_read_are_found(table: HandmadeTable) -> None:
    """Reader and encoder agree, and both lack a row: only the log has it."""
    result = _check(table, _record(MarkerCounts(inserts=12, deletes=10), ChangeCounts(insert=12, delete=10)))
    assert result.problems == (
        "shop.orders, versions 1 to 2: the parts have +2 rows (INSERT minus DELETE), +3 by the log",
    )


def test_rows_that_were_read_and_did_not_land_are_found(table: HandmadeTable) -> None:
    result = _check(table, _record(MarkerCounts(inserts=12, deletes=10), _READ))
    assert "+2 rows (INSERT minus DELETE), +3 were read to land" in result.message
    assert "12 new and 10 old rows, 13 and 10 were read" in result.message


def test_a_doubled_observation_blocks_nothing(table: HandmadeTable) -> None:
    recount = Recount(_COUNTED)
    record = _record(_MARKERS, ChangeCounts(insert=26, delete=20), scanned=_doubled(_SCANNED))
    assert _check(table, record, recount).problems == ()
    assert recount.asked == 1
    assert not _check(table, record).passed


def test_a_doubled_observation_hides_no_lost_row(table: HandmadeTable) -> None:
    recount = Recount({1: CountedRows(new=3), 2: CountedRows(new=9, old=10)})
    fewer = MarkerCounts(inserts=12, deletes=10)
    result = _check(table, _record(fewer, _READ, scanned=_doubled(_SCANNED)), recount)
    assert "shop.orders, version 1: +3 rows were read, +4 by the log" in result.problems
    assert "version 2:" not in result.message


@pytest.mark.parametrize(
    ("scanned", "message"),
    [
        (_SCANNED.model_copy(update={"weighted": 3 * weight(1)}), "are not those of the log's commits"),
        (_SCANNED.model_copy(update={"new": 14}), "+4 rows were read (new minus old), +3 by the log"),
        (_SCANNED.model_copy(update={"new": 12, "old": 9}), "12 new and 9 old rows were read, 13 and 10 by the log"),
        (_SCANNED.model_copy(update={"postimages": 1}), "0 pre-images and 1 post-images"),
    ],
)
def test_rows_read_are_those_of_the_log(table: HandmadeTable, scanned: ScannedRows, message: str) -> None:
    assert message in _check(table, _record(_MARKERS, _READ, scanned=scanned)).message


def test_only_copied_rows_may_not_land(table: HandmadeTable) -> None:
    """The encoder may leave out unchanged rows of replaced files, as many new ones as old ones."""
    assert _check(table, _record(MarkerCounts(inserts=4, deletes=1), _READ)).passed
    assert not _check(
        table, _record(MarkerCounts(inserts=4, updates=1, deletes=1), ChangeCounts(insert=4, delete=1))
    ).passed
    appended = _record(MarkerCounts(inserts=3), ChangeCounts(insert=4), last=1)
    assert not _check(table, appended).passed


def test_a_commit_that_copies_rows_hides_no_lost_update_of_another(table: HandmadeTable) -> None:
    table.commit(
        file_action("remove", "b.parquet"), file_action("add", "e.parquet", records=4), file_action("cdc", "c.parquet")
    )
    table.file("c.parquet", 8)
    read = ChangeCounts(insert=9, delete=10, update_preimage=4, update_postimage=4)
    scanned = ScannedRows(new=13, old=14, preimages=4, postimages=4, weighted=-1 * weight(2))
    for updates, copied, passes in ((4, 9, True), (0, 5, True), (3, 9, False), (0, 6, False)):
        landed = MarkerCounts(inserts=9 - copied, updates=updates, deletes=10 - copied)
        assert _check(table, _record(landed, read, first=2, last=3, scanned=scanned)).passed == passes


@pytest.mark.parametrize("kind", [SliceKind.NET, SliceKind.CHANGES])
def test_rows_left_out_by_where_are_counted(table: HandmadeTable, kind: SliceKind) -> None:
    read = ChangeCounts(insert=5, delete=7, update_preimage=1, update_postimage=1)
    markers = MarkerCounts(inserts=5, updates=1, deletes=7)
    scanned = _SCANNED
    assert _check(table, _record(markers, read, kind=kind, where="w", scanned=scanned)).passed
    fewer = _record(MarkerCounts(inserts=4, updates=1, deletes=7), read, kind=kind, where="w", scanned=scanned)
    kept = {1: CountedRows(new=5), 2: CountedRows(new=1, old=8)}
    recount = Recount(_COUNTED, kept)
    result = _check(table, fewer, recount)
    assert "-3 rows (INSERT minus DELETE), -2 were read to land" in result.message
    doubled = ChangeCounts(**{name: 2 * number for name, number in read.model_dump().items()})
    assert _check(table, _record(markers, doubled, kind=kind, where="w", scanned=scanned), recount).passed


def test_a_net_slice_lands_fewer_rows_than_it_reads(table: HandmadeTable) -> None:
    assert _check(table, _record(MarkerCounts(inserts=3), _READ, kind=SliceKind.NET)).passed
    assert not _check(table, _record(MarkerCounts(inserts=2), _READ, kind=SliceKind.NET)).passed


def test_compared_versions_have_a_balance_only(table: HandmadeTable) -> None:
    read, markers = ChangeCounts(insert=4, delete=1), MarkerCounts(inserts=4, deletes=1)
    scanned = ScannedRows(new=4, old=1, weighted=3 * weight(2))
    record = _record(markers, read, kind=SliceKind.NET, scanned=scanned)
    assert _check(table, record, by_commit=False).passed
    assert not _check(table, record, by_commit=True).passed


def test_a_snapshot_has_the_rows_of_its_version(table: HandmadeTable) -> None:
    ledger = version_ledger(DeltaLog(str(table.root)), 2)

    def check(rows: int, scanned: ScannedRows | None = None) -> CheckResult:
        read, markers = ChangeCounts(insert=rows), MarkerCounts(inserts=rows)
        record = _record(markers, read, first=0, kind=SliceKind.SNAPSHOT, scanned=scanned)
        return row_conservation(SliceRows(record, ledger))

    assert check(13).passed
    assert check(13, ScannedRows(new=13, weighted=13 * weight(2))).passed
    assert check(12).problems == (
        "shop.orders, version 2: the parts have +12 rows (INSERT minus DELETE), +13 by the log",
    )
    assert not check(13, ScannedRows(new=14, old=1, weighted=13 * weight(2))).passed


def test_wrong_statistics_warn_and_block_nothing(table: HandmadeTable) -> None:
    table.commit(file_action("add", "d.parquet", records=100))
    table.file("d.parquet", 10)
    scanned = ScannedRows(new=10, weighted=10 * weight(3))
    record = _record(MarkerCounts(inserts=10), ChangeCounts(insert=10), first=3, last=3, scanned=scanned)
    result = _check(table, record)
    assert result.passed
    assert "footers decided: d.parquet has 10 rows by its footer, 100 by its statistics" in result.warning
    assert not _check(table, record.model_copy(update={"read": ChangeCounts(insert=9)})).passed


def test_an_unproved_commit_blocks_nothing(table: HandmadeTable) -> None:
    table.commit(file_action("add", "d.parquet", records=None))
    table.commit(file_action("remove", "d.parquet", records=None))
    record = _record(MarkerCounts(deletes=6), ChangeCounts(delete=6), first=4, last=4)
    result = _check(table, record)
    assert (result.passed, result.unproved, result.metadata["commits_unproved"]) == (True, 1, 1)
    assert result.warning == "shop.orders: unproved, because files without statistics are lost: 4"
    assert not _check(table, record.model_copy(update={"read": ChangeCounts(delete=7)})).passed


def test_a_rewrite_that_loses_rows_is_found_in_an_empty_slice(table: HandmadeTable) -> None:
    table.commit(file_action("remove", "b.parquet", data=False), file_action("add", "e.parquet", records=3, data=False))
    record = _record(MarkerCounts(), ChangeCounts(), first=3, last=3, kind=SliceKind.NET)
    result = _check(table, record.model_copy(update={"parts": ()}))
    assert "+0 rows (INSERT minus DELETE), -1 by the log" in result.message
    assert "change their number by -1" in result.warning


def test_a_change_file_that_was_not_read_is_found_among_many(table: HandmadeTable) -> None:
    """Updates have no balance, so only the footers of change files have their number."""
    names = [f"c{number}.parquet" for number in range(200)]
    changes = [file_action("cdc", name) for name in names]
    table.commit(file_action("remove", "b.parquet"), file_action("add", "e.parquet", records=4), *changes)
    for name in names:
        table.file(name, 2)

    def passes(files: int) -> bool:
        scanned = ScannedRows(new=files, old=files, preimages=files, postimages=files)
        read, markers = ChangeCounts(update_preimage=files, update_postimage=files), MarkerCounts(updates=files)
        return _check(table, _record(markers, read, first=3, last=3, scanned=scanned)).passed

    assert (passes(200), passes(199)) == (True, False)


def test_change_files_have_the_rows_of_their_footers(table: HandmadeTable) -> None:
    table.commit(
        file_action("remove", "b.parquet"), file_action("add", "e.parquet", records=4), file_action("cdc", "c.parquet")
    )
    table.file("c.parquet", 2)
    scanned = ScannedRows(new=1, old=1, preimages=1, postimages=1)
    read, markers = ChangeCounts(update_preimage=1, update_postimage=1), MarkerCounts(updates=1)
    assert _check(table, _record(markers, read, first=3, last=3, scanned=scanned)).passed
    table.file("c.parquet", 4)
    found = _check(table, _record(markers, read, first=3, last=3, scanned=scanned))
    assert "2 rows were read, 4 by change files and log" in found.message


@pytest.mark.parametrize(
    ("kind", "markers", "problem"),
    [
        (SliceKind.REPAIR, MarkerCounts(upserts=3), ""),
        (SliceKind.REPAIR, MarkerCounts(upserts=2), "the comparison with the mirror has 3 and 0"),
        (SliceKind.REPAIR, MarkerCounts(upserts=3, deletes=1), "the comparison with the mirror has 3 and 0"),
        (SliceKind.START, MarkerCounts(), ""),
        (SliceKind.START, MarkerCounts(inserts=1), "a start slice has 1 rows"),
    ],
)
def test_a_repair_lands_the_rows_of_its_comparison_and_a_start_none(
    tmp_path: Path, kind: SliceKind, markers: MarkerCounts, problem: str
) -> None:
    """No log is read."""
    found = _check(HandmadeTable(tmp_path), _record(markers, ChangeCounts(insert=3), kind=kind))
    assert (found.passed, problem in found.message) == (not problem, True)
