"""How a version's files are cut into chunks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.batching import DataFile, Limits, chunk_files, is_small
from mirror_assets.source.errors import LogGap
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.source.handmade import commit_file

_FILES = st.lists(st.builds(DataFile, st.just("f"), st.integers(0, 300), st.none() | st.integers(0, 30)), min_size=1)
_LIMITS = st.builds(Limits, st.just(1), st.integers(1, 80), st.integers(1, 900))


@given(_FILES, _LIMITS)
def test_every_file_is_in_one_chunk_that_is_as_long_as_it_may_be(files: list[DataFile], limits: Limits) -> None:
    chunks = chunk_files(files, limits)
    assert [index for chunk in chunks for index in range(chunk.first, chunk.end)] == list(range(len(files)))
    assert [(chunk.number, chunk.of) for chunk in chunks] == [(n, len(chunks)) for n in range(1, len(chunks) + 1)]
    for chunk in chunks:
        held = files[chunk.first : chunk.end]
        assert (chunk.rows, chunk.bytes) == (sum(f.likely_rows for f in held), sum(f.bytes for f in held))
        assert len(held) == 1 or (chunk.rows <= limits.max_rows and chunk.bytes <= limits.max_bytes)
    for before, after in pairwise(chunks):
        following = files[after.first]
        too_long = before.rows + following.likely_rows > limits.max_rows
        assert too_long or before.bytes + following.bytes > limits.max_bytes


@given(_FILES, _LIMITS, st.data())
def test_who_goes_on_behind_any_chunk_cuts_the_same(files: list[DataFile], limits: Limits, data: st.DataObject) -> None:
    chunks = chunk_files(files, limits)
    landed = data.draw(st.integers(0, len(chunks) - 1))
    end = chunks[landed - 1].end if landed else 0
    assert chunk_files(files, limits, chunks=landed, landed=end) == chunks[landed:]


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Three files of ten rows each, the first of which the last commit rewrites."""
    for first in (0, 10, 20):
        write_deltalake(tmp_path / "t", pa.table({"id": list(range(first, first + 10))}), mode="append")
    DeltaTable(tmp_path / "t").update(predicate="id = 1", updates={"id": "100"})
    return DeltaLog(str(tmp_path / "t"))


def test_the_files_of_a_version_are_those_that_lived_then(log: DeltaLog) -> None:
    before, now = log.data_files(2), log.data_files(3)
    assert [file.rows for file in before] == [10, 10, 10]
    assert [file.path for file in before] == sorted(file.path for file in before)
    assert len({file.path for file in (*before, *now)}) == 4
    assert sum(file.bytes for file in before) == log.state(2).bytes


def test_a_version_that_is_not_in_the_log_any_more_has_no_files(log: DeltaLog, tmp_path: Path) -> None:
    commit_file(tmp_path / "t", 1).unlink()
    with pytest.raises(LogGap):
        log.data_files(2)


@pytest.mark.parametrize(("limits", "small"), [((30, 10**6), True), ((29, 10**6), False), ((30, 100), False)])
def test_a_table_below_both_limits_is_small(log: DeltaLog, limits: tuple[int, int], *, small: bool) -> None:
    assert is_small(log.state(), Limits(1, *limits)) is small
