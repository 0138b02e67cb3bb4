"""The forecast of what comparing versions reads: net of files that come and go within the commits."""

from __future__ import annotations

from mirror_assets.source.commits import Commit, FileVersion
from mirror_assets.source.differing_files import Compared, DifferingFiles


def file(path: str, rows: int = 10, vector: str | None = None) -> FileVersion:
    return FileVersion(path, vector, rows, bytes=100)


def commit(
    version: int, added: tuple[FileVersion, ...] = (), removed: tuple[FileVersion, ...] = (), *, rewrites: bool = False
) -> Commit:
    changes = bool(added or removed) and not rewrites
    return Commit(version, 0, "WRITE", changes, changed_rows=int(changes), added=added, removed=removed)


def read(*commits: Commit) -> tuple[Compared | None, int]:
    found = DifferingFiles(commits)
    return found.compared(), found.rows


def test_a_file_that_comes_and_goes_is_not_read() -> None:
    commits = commit(5, (file("b"),), (file("a"),)), commit(6, (file("c"),), (file("b"),))
    assert read(*commits) == (Compared(4, 6, files=2, bytes=200), 20)
    back = commit(7, (file("a"),), (file("c"),))  # a RESTORE
    assert read(*commits, back) == (Compared(4, 7, files=0, bytes=0), 0)


def test_of_a_file_with_another_vector_the_rows_between_are_read() -> None:
    hidden = commit(5, (file("a", 7, "v1"),), (file("a"),)), commit(6, (file("a", 4, "v2"),), (file("a", 7, "v1"),))
    assert read(*hidden) == (Compared(4, 6, files=1, bytes=100), 6)
    gone = commit(7, removed=(file("a", 4, "v2"),))
    assert read(*hidden, gone) == (Compared(4, 7, files=1, bytes=100), 10)


def test_commits_that_only_rewrite_rows_cost_nothing_at_the_ends() -> None:
    before = commit(5, (file("b"),), (file("a"),), rewrites=True)
    change = commit(6, (file("c"),))
    after = commit(7, (file("d"),), (file("b"), file("c")), rewrites=True)
    assert read(before, change, after) == (Compared(5, 6, files=1, bytes=100), 10)
    assert read(before, after) == (None, 0)
    assert DifferingFiles((change, after)).mixes_rewrites is False
    between = DifferingFiles((change, after, commit(8, (file("e"),))))
    assert (between.mixes_rewrites, between.compared()) == (True, Compared(5, 8, files=3, bytes=300))
