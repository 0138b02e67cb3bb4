"""Which commits `feed` shows, from logs alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.pipeline.preview import show_changes
from mirror_assets.source.ranges import parse_range
from mirror_assets_tests.errors import raises
from mirror_assets_tests.pipeline.paper import Paper
from mirror_assets_tests.source.handmade import commit_file

_DAY = 86_400.0


@pytest.mark.parametrize("first", ["0", "2"])
def test_the_advised_first_commit_of_a_cleaned_log_is_one_that_can_be_read(tmp_path: Path, first: str) -> None:
    """Commit 2 is in the log, but version 2 can't be reconstructed without those before it."""
    paper = Paper(tmp_path)
    paper.create(_DAY)
    for version in range(1, 5):
        paper.commit(version, (version + 1) * _DAY)
    DeltaTable(paper.lake, version=3).create_checkpoint()
    for version in range(2):
        commit_file(paper.lake, version).unlink()
    context = paper.context
    requested = parse_range(first, None, clip=False)
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="commits from version 3 on"):
        list(show_changes(context.table, context.log, context.spark, requested, 5))
