"""The ledger counts the rows of commits by their actions, also where a log is odd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.actions import Actions, LiveFile, Tombstone, Vector
from mirror_assets.source.errors import LogGap
from mirror_assets.source.log import DeltaLog
from mirror_assets.verify.ledger import NO_FILES, RunningLedger, weight
from mirror_assets.verify.ledger_log import SliceLedger, audit, read_vectors, version_ledger
from mirror_assets_tests.source.handmade import Action, commit_file, file_action
from mirror_assets_tests.verify.handmade_table import HandmadeTable


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    """Version 0 has a.parquet with ten rows."""
    made = HandmadeTable(tmp_path)
    made.commit(file_action("add"))
    return made


def _rows(ledger: SliceLedger) -> list[int | None]:
    return [commit.rows for commit in ledger.by_statistics.commits]


def test_appends_and_removes(table: HandmadeTable) -> None:
    table.commit(file_action("add", "b.parquet", records=7))
    table.commit(file_action("remove"), file_action("add", "c.parquet", records=4))
    ledger = table.ledger(0, 2)
    assert _rows(ledger) == [10, 7, -6]
    assert [(one.new, one.old) for one in ledger.by_statistics.commits] == [(10, 0), (7, 0), (4, 10)]
    assert (ledger.by_statistics.rows, ledger.by_statistics.new, ledger.by_statistics.old) == (11, 21, 10)
    assert ledger.by_statistics.weighted() == 10 * weight(0) + 7 * weight(1) - 6 * weight(2)
    assert ledger.by_statistics.weighted(2) == 11 * weight(2)
    assert [one.copies for one in ledger.by_statistics.commits] == [0, 0, 4]


def test_vectors_hide_rows(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", deleted=3))
    table.commit(file_action("remove", deleted=3), file_action("add", deleted=5))
    table.commit(file_action("remove", deleted=5))
    assert _rows(table.ledger(1, 3)) == [-3, -2, -5]
    first, _, last = table.ledger(1, 3).by_statistics.commits
    assert (first.new, first.old, last.new, last.old) == (None, None, 0, 5)


def test_a_commit_copies_at_most_the_rows_that_it_shows_and_hides(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", deleted=3))
    both = file_action("remove", deleted=3), file_action("add", deleted=5)
    table.commit(*both, file_action("add", "b.parquet", records=7))
    table.commit(file_action("remove", deleted=5), file_action("add", "c.parquet", records=9))
    table.commit(file_action("remove", "c.parquet"), file_action("add", "d.parquet"), file_action("cdc", "e.parquet"))
    unknown = file_action("remove", "b.parquet", records=None), file_action("add", "f.parquet", records=None)
    table.commit(*unknown, file_action("remove", "d.parquet"))
    copies = [one.copies for one in table.ledger(1, 5).by_statistics.commits]
    assert copies[:4] == [0, 5, 5, 0], "three rows were hidden and two more are; c has more rows than were shown"


def test_a_restore_copies_rows_that_a_file_shows_again(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", deleted=1), file_action("add", "b.parquet", records=1))
    table.commit(file_action("remove", deleted=1), file_action("add"), file_action("remove", "b.parquet", records=1))
    table.commit(file_action("remove"), file_action("add", deleted=2))
    assert [one.copies for one in table.ledger(1, 3).by_statistics.commits] == [1, 1, 0]


_REMOVE = file_action("remove")
_OVERWRITTEN = ("adds another file under the same name, a.parquet",)


@pytest.mark.parametrize(
    ("actions", "rows", "contradictions"),
    [
        ([file_action("remove", records=None), file_action("add", records=None, deleted=4)], -4, ()),
        ([file_action("remove", "deletion_vector_a.bin", records=None, data=False)], 0, ()),
        ([file_action("add", data=False)], 0, ()),
        ([_REMOVE, file_action("add", size=200)], None, _OVERWRITTEN),
        ([_REMOVE, file_action("add", records=7)], None, _OVERWRITTEN),
    ],
    ids=["another vector", "a file of vectors", "new statistics", "a file of other size", "a file of other rows"],
)
def test_one_odd_commit(
    table: HandmadeTable, actions: Sequence[Action], rows: int | None, contradictions: Sequence[str]
) -> None:
    """Another vector needs no statistics, Delta removes files of vectors, and writers add statistics of live files."""
    table.commit(*actions)
    (commit,) = table.ledger(1).by_statistics.commits
    assert (commit.rows, commit.contradictions) == (rows, contradictions)


def test_a_remove_with_another_vector_leaves_the_live_file(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path)
    table.commit(file_action("add", deleted=3))
    table.commit(file_action("remove"), file_action("add", "b.parquet", records=7))
    table.commit(file_action("remove", deleted=3), file_action("remove"))
    assert _rows(table.ledger(1, 2)) == [7, -7]
    assert _rows(table.ledger(2)) == [-7]
    (stale,) = table.ledger(1).by_statistics.commits
    assert (stale.rows, stale.contradictions) == (7, ("removes a.parquet, which is not live",))


def test_a_file_that_a_commit_removes_and_adds_again_is_live(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add"))
    table.commit(file_action("remove"))
    assert _rows(table.ledger(2)) == [-10]


def test_a_file_named_twice_counts_once(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("remove"), file_action("add", "b.parquet"))
    table.commit(file_action("add", "c.parquet"), file_action("add", "c.parquet"))
    assert _rows(table.ledger(1, 2)) == [0, 10]


def test_a_file_removed_again_later_counts_once(table: HandmadeTable) -> None:
    table.commit(file_action("remove"))
    table.commit(file_action("remove"))
    assert _rows(table.ledger(1, 2)) == [-10, 0]
    (again,) = table.ledger(2).by_statistics.commits
    assert (again.rows, again.contradictions) == (0, ("removes a.parquet, which is not live",))


def test_a_file_added_while_live_replaces_itself(table: HandmadeTable) -> None:
    table.commit(file_action("add"))
    table.commit(file_action("add"), file_action("add", "b.parquet"))
    assert _rows(table.ledger(1, 2)) == [0, 10]
    assert table.ledger(1).by_statistics.commits[0].contradictions == ("adds a.parquet, which is live already",)
    assert _rows(table.ledger(2)) == [10]


def test_a_file_added_while_live_with_its_vector(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", deleted=2))
    table.commit(file_action("add", deleted=2))
    assert _rows(table.ledger(2)) == [0]
    table.commit(file_action("remove", deleted=2), file_action("add", deleted=2))
    assert _rows(table.ledger(3)) == [0]


@pytest.mark.parametrize("path", ["a b.parquet", "ü.parquet", "x=1%2F2/a.parquet", "x=a:b/c.parquet"])
def test_encoded_paths_are_found_in_the_version_before(table: HandmadeTable, path: str) -> None:
    table.commit(file_action("add", quote(path)))
    table.commit(file_action("remove", quote(path)))
    table.commit(file_action("remove", quote(path)))
    assert _rows(table.ledger(2)) == [-10]
    assert _rows(table.ledger(3)) == [0]


def test_files_that_only_rewrite_rows_must_add_as_many_as_they_remove(table: HandmadeTable) -> None:
    table.commit(file_action("remove", data=False), file_action("add", "b.parquet", data=False))
    table.commit(file_action("remove", "b.parquet", data=False), file_action("add", "c.parquet", records=9, data=False))
    whole, lossy = table.ledger(1, 2).by_statistics.commits
    assert (whole.rows, whole.new, whole.old, whole.contradictions) == (0, 0, 0, ())
    assert (lossy.rows, lossy.new, lossy.old) == (-1, None, None)
    assert "change their number by -1" in lossy.contradictions[0]


@pytest.mark.parametrize("records", [None, 99])
def test_the_statistics_of_an_add_count_more_than_those_of_its_remove(
    table: HandmadeTable, records: int | None
) -> None:
    table.commit(file_action("remove", records=records))
    assert _rows(table.ledger(1)) == [-10]
    assert _rows(table.ledger(0, 1)) == [10, -10]


def test_without_statistics_footers_decide(table: HandmadeTable) -> None:
    table.commit(file_action("add", "b.parquet", records=None))
    table.commit(file_action("remove", "b.parquet", records=None))
    assert _rows(table.ledger(1, 2)) == [None, None]
    assert table.ledger(1, 2).by_statistics.unproved == (1, 2)
    assert table.ledger(1, 2).by_statistics.rows is None
    table.file("b.parquet", 6)
    assert _rows(table.ledger(1, 2)) == [6, -6]
    assert table.ledger(1, 2).by_footers.wrong_statistics == ()


def test_footers_correct_wrong_statistics(table: HandmadeTable) -> None:
    table.commit(file_action("add", "b.parquet", records=100), file_action("add", "lost.parquet", records=5))
    table.file("b.parquet", 10)
    ledger = table.ledger(1)
    assert ledger.by_statistics.rows == 105
    assert ledger.by_footers.rows == 15
    assert ledger.by_footers.wrong_statistics == ("b.parquet has 10 rows by its footer, 100 by its statistics",)


def test_change_files_have_no_counts(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", "b.parquet"), file_action("cdc", "c/1.parquet"))
    table.file("c/1.parquet", 8)
    ledger = table.ledger(1)
    (commit,) = ledger.by_statistics.commits
    assert (commit.rows, commit.new, commit.old, commit.change_files) == (0, None, None, ("c/1.parquet",))
    assert ledger.rows_in(commit.change_files) == 8
    assert ledger.rows_in(["c/lost.parquet"]) is None


def test_a_log_without_the_version_before(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", "b.parquet", records=3))
    DeltaTable(str(table.root)).create_checkpoint()
    commit_file(table.root, 0).unlink()
    assert _rows(table.ledger(1)) == [-7]
    with pytest.raises(LogGap):
        _rows(table.ledger(0))


def test_a_version_has_the_rows_of_its_files(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", deleted=3))
    table.commit(file_action("add", "c.parquet", records=5), file_action("add", "b.parquet", records=None))
    table.file("b.parquet", 100)
    log = DeltaLog(str(table.root))
    balances = version_ledger(log, 2).by_statistics
    assert (balances.rows, balances.new, balances.old, balances.weighted()) == (112, 112, 0, 112 * weight(2))
    chunks = [version_ledger(log, 2, first, first + 1).by_statistics.rows for first in range(3)]
    assert chunks == [7, 100, 5]
    assert version_ledger(log, 0).by_statistics.rows == 10


def test_a_version_has_a_file_that_one_commit_removed_and_added_again(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add"), file_action("add", "b.parquet", records=5))
    table.file("a.parquet", 10)
    log = DeltaLog(str(table.root))
    assert version_ledger(log, 1).by_statistics.rows == 15
    chunks = [version_ledger(log, 1, first, first + 1).by_statistics.rows for first in range(2)]
    assert chunks == [10, 5]
    assert [file.rows for file in log.reopened().snapshot(1).files] == [10, 5]


def test_a_file_that_is_live_without_delta_rs_knowing_is_added_once_more(table: HandmadeTable) -> None:
    table.file("a.parquet", 10)
    table.commit(file_action("remove"), file_action("add"))
    table.commit(file_action("add"))
    ledger = table.ledger(2)
    assert (ledger.by_statistics.rows, ledger.by_footers.rows) == (10, 0)


def test_the_audit_reads_no_footers(table: HandmadeTable) -> None:
    table.file("b.parquet", 6)
    table.commit(file_action("add", "b.parquet", records=None))
    table.commit(file_action("remove"), file_action("remove", "never.parquet"))
    found = list(audit(DeltaLog(str(table.root))))
    assert [(one.version, one.rows) for one in found] == [(0, 10), (1, None), (2, -10)]
    assert found[2].contradictions == ("removes never.parquet, which is not live",)


def test_the_newest_vectors_of_a_version(table: HandmadeTable) -> None:
    table.commit(file_action("remove"), file_action("add", deleted=3))
    table.commit(file_action("add", "b.parquet"))
    vectors = read_vectors(DeltaLog(str(table.root)), 2)
    assert {path: sum(rows.values()) for path, rows in vectors.items()} == {"a.parquet": 3, "b.parquet": 0}


_PATHS = ("a", "b", "c")
_SIZES = {"a": 20, "b": 30, "c": 40}
_Live = Mapping[str, int]
_one_version = st.dictionaries(st.sampled_from(_PATHS), st.integers(0, 3))


def _add(path: str, hidden: int, *, known: bool) -> LiveFile:
    vector = Vector(f"i{hidden}", None, 1, hidden) if hidden else None
    return LiveFile(path, 1, _SIZES[path] if known else None, 0, {}, vector, {})


def _remove(path: str, hidden: int, *, known: bool) -> Tombstone:
    vector = Vector(f"i{hidden}", None, 1, hidden) if hidden else None
    return Tombstone(path, vector, 0, 1, _SIZES[path] if known else None)


def _commit(before: _Live, after: _Live, *, known: bool, twice: bool) -> Actions:
    """The commit between two versions, each as the hidden rows by file; files that stay may be named again."""
    added = [_add(path, hidden, known=True) for path, hidden in after.items() if twice or before.get(path) != hidden]
    removed = [_remove(path, rows, known=known) for path, rows in before.items() if after.get(path) != rows]
    times = 2 if twice else 1
    return Actions(added=tuple(added * times), removed=tuple(removed * times))


def _shown(version: _Live) -> int:
    return sum(_SIZES[path] - hidden for path, hidden in version.items())


@given(versions=st.lists(_one_version, min_size=1, max_size=6), known=st.booleans(), twice=st.booleans())
def test_balances_are_the_differences_between_versions(versions: Sequence[_Live], known: bool, twice: bool) -> None:
    running, before = RunningLedger(lambda: NO_FILES), dict[str, int]()
    for number, after in enumerate(versions):
        found = running.apply(number, _commit(before, after, known=known, twice=twice)).balance(running.stored_rows)
        assert found.rows == _shown(after) - _shown(before)
        before = dict(after)
