"""The check history_retention: told before a commit that is not kept can be gone. No Spark."""

from __future__ import annotations

import time
from pathlib import Path

from mirror_assets.features.history.history_log import HistoryCommit
from mirror_assets.features.history.with_dagster.history_check import history_deadline
from mirror_assets.verify.timeliness import check_retention
from mirror_assets_tests.features.history.sources import Place
from mirror_assets_tests.features.history.test_history_log import write

_DAY = 86_400.0


def test_a_commit_that_waits_has_as_long_as_the_source_keeps_its_files(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.create()
    context = place.context()
    assert not history_deadline(context, time.time()).waits
    write(Path(context.history.uri), HistoryCommit(1, context.source.state().table_id, 0, 0, "a"))
    assert not history_deadline(context, time.time()).waits
    place.append(10)
    deadline = history_deadline(context, time.time() + 5 * _DAY)
    assert (deadline.version, deadline.waits, deadline.then) == (1, True, "its rows are lost to the history")
    late, early = (check_retention(deadline, days * _DAY, "history_retention") for days in (3, 1))
    assert (late.check, late.passed, early.passed) == ("history_retention", False, True)
    assert "then its rows are lost to the history; to keep it for longer: ALTER TABLE" in late.message
