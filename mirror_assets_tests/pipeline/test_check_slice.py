"""The two counts of a slice's rows: what Spark observes while it encodes the slice, and the count for the check."""

from __future__ import annotations

import pytest

from mirror_assets.pipeline.check_slice import _slice_rows, check_rows
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
