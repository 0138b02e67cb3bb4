"""Which commit is missing, by the names in a log's folder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import FileInfo, FileType

from mirror_assets.source.log_listing import LogListing

_VERSIONS = st.sets(st.integers(0, 12))


def _missing(names: list[str], version: int) -> int | None:
    files = [FileInfo(f"_delta_log/{name}", FileType.File) for name in names]
    return LogListing(files).gap_since_checkpoint(version)


def _names(commits: set[int], checkpoints: set[int]) -> list[str]:
    return [f"{at:020d}.json" for at in commits] + [f"{at:020d}.checkpoint.parquet" for at in checkpoints]


def _can_be_put_together(version: int, commits: set[int], checkpoints: set[int]) -> bool:
    """By the protocol: step by step from where something whole is."""
    known = version in checkpoints
    return known or (version in commits and (version == 0 or _can_be_put_together(version - 1, commits, checkpoints)))


@given(_VERSIONS, _VERSIONS, st.integers(0, 13))
def test_a_commit_is_missing_if_and_only_if_the_version_cannot_be_put_together(
    commits: set[int], checkpoints: set[int], version: int
) -> None:
    missing = _missing(_names(commits, checkpoints), version)
    assert (missing is None) == _can_be_put_together(version, commits, checkpoints)
    assert missing is None or (missing not in commits and missing <= version)


def test_a_checkpoint_that_is_not_whole_counts_as_there() -> None:
    parts = [f"{4:020d}.checkpoint.{1:010d}.{2:010d}.parquet", f"{5:020d}.json", "_last_checkpoint"]
    assert _missing(parts, 5) is None
    assert _missing([*parts, f"{7:020d}.json"], 7) == 6
