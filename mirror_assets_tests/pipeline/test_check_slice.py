"""The two counts of a slice's rows: what Spark observes while it encodes the slice, and the count for the check."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from mirror_assets.encode import changes, net_changes
from mirror_assets.encode.rows_of_keys import rows_of_keys
from mirror_assets.errors import MirrorError
from mirror_assets.pipeline.check_slice import ScanCounter, _slice_rows, check_rows
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.verify.conservation import row_conservation
from mirror_assets_tests.lab import Lab

_STATEMENTS = (
    "INSERT INTO {t} SELECT CAST(id + 100 AS INT), IF(id % 2 = 0, 'in', NULL), 1 FROM range(100)",
    "UPDATE {t} SET name = IF(name = 'in', NULL, 'in') WHERE id % 3 = 0",
    "UPDATE {t} SET amount = amount + 1 WHERE id >= 100",
    "DELETE FROM {t} WHERE amount = 2",
)


@pytest.mark.parametrize("setting", ["changes: feed", "changes: files"])
def test_both_counts_of_a_slice_are_those_of_its_log_and_its_parts(lab: Lab, setting: str) -> None:
    """With a feed, each commit has enough rows to land unpaired; a doubled observation needs the second count."""
    settings = f"{setting}\n    where: \"name = 'in'\"\n    files: {{target_rows: 50}}"
    lab.configure(settings, "slices: {max_commits: 100}")
    (loaded,) = lab.mirror()
    lab.sql(*_STATEMENTS)
    (changed,) = lab.mirror()
    assert (changed.record.compared is None) == (setting == "changes: feed"), "the feed was given up"
    for record in (loaded.record, changed.record):
        observed = _slice_rows(lab.context, record)
        assert row_conservation(observed).problems == ()
        assert record.scanned is not None
        twice = {name: 2 * number for name, number in record.scanned.model_dump().items()}
        doubled = record.model_copy(update={"scanned": record.scanned.model_copy(update=twice)})
        assert row_conservation(_slice_rows(lab.context, doubled)).problems != ()
        assert check_rows(lab.context, doubled).problems == ()


_UNPAIRED = "where: amount >= 0\n    files: {target_rows: 8}"


@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("INSERT INTO {t} SELECT CAST(id + 100 AS INT), 'new', 1 FROM range(10)", "id <> 103"),
        ("DELETE FROM {t}", "id <> 3"),
    ],
    ids=["an insert", "a delete"],
)
def test_a_row_that_meets_the_condition_and_is_lost_from_the_parts_is_found(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, statement: str, lost: str
) -> None:
    """The commit lands unpaired: its parts are not compared with the log, which knows no condition."""
    lab.configure(_UNPAIRED)
    lab.mirror()
    lab.sql(statement)
    real = changes.unpaired_rows

    def without_one(*args: Any) -> DataFrame:  # noqa: ANN401 passed on
        return real(*args).where(lost)

    monkeypatch.setattr(changes, "unpaired_rows", without_one)
    with pytest.raises(ChecksFailed, match=r"9 rows .* [+-]10 were read to land"):
        lab.mirror()


def test_a_delete_of_rows_that_do_not_meet_the_condition_needs_no_second_count(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.configure(_UNPAIRED.replace(">= 0", ">= 100"))
    lab.mirror()
    lab.sql("DELETE FROM {t}")
    monkeypatch.setattr(ScanCounter, "count", lambda _: pytest.fail("the rows were counted again"))
    (changed,) = lab.mirror()
    assert changed.record.scanned is not None
    assert (changed.record.scanned.new, changed.record.scanned.old, changed.record.markers.total) == (0, 10, 0)


@pytest.mark.parametrize("broadcast", [0, 200_000], ids=["many keys", "few keys"])
def test_an_update_that_a_comparison_of_versions_finds_and_loses_is_found(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, broadcast: int
) -> None:
    lab.configure("changes: files")
    lab.mirror()
    lab.sql("UPDATE {t} SET amount = -1 WHERE id < 3")
    real = rows_of_keys

    def without_one(changed: DataFrame, has_row: Any, rows: DataFrame, *args: Any, **named: Any) -> DataFrame:  # noqa: ANN401 passed on
        return real(changed, has_row, rows.where("id <> 2"), *args, **named)

    monkeypatch.setattr(net_changes, "BROADCAST_KEYS", broadcast)
    monkeypatch.setattr(net_changes, "rows_of_keys", without_one)
    with pytest.raises(MirrorError, match=r"2 changes, and 3 keys differ|was read once, and not again"):
        lab.mirror()


def test_rows_that_a_restore_shows_again_are_copies_of_those_that_it_removes(lab: Lab) -> None:
    """Without change files: a file loses its vector, and the file of the row that was updated is removed."""
    lab.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    lab.sql("UPDATE {t} SET amount = 100 WHERE id = 1", "UPDATE {t} SET amount = 0.5 WHERE id = 1")
    lab.configure(defaults="slices: {max_commits: 100}")
    lab.mirror()
    lab.sql("RESTORE TABLE {t} TO VERSION AS OF 2")
    (restored,) = lab.mirror()
    assert (restored.record.compared, restored.record.markers.total) == (None, 0)
    assert lab.is_equal
