"""Commits as the plan needs them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.commits import Commit, vector_versions

_LIMIT = 2_000_000


def _commit(version: int, rows: int, *, deletion_vectors: bool = True) -> Commit:
    return Commit(version, 0, "DELETE", changes_data=True, rows=rows, deletion_vectors=deletion_vectors)


@given(st.lists(st.tuples(st.integers(0, _LIMIT + 1), st.booleans()), max_size=30))
def test_vectors_are_compared_together_up_to_a_number_of_rows(drawn: list[tuple[int, bool]]) -> None:
    commits = [_commit(number, rows, deletion_vectors=vector) for number, (rows, vector) in enumerate(drawn)]
    together = vector_versions(commits)
    left = [commit for commit in commits if commit.deletion_vectors and commit.version not in together]
    rows = sum(commits[version].rows for version in together)
    assert list(together) == sorted(together)
    assert all(commits[version].deletion_vectors for version in together)
    assert rows <= _LIMIT
    assert all(rows + commit.rows > _LIMIT for commit in left)
