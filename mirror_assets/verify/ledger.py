"""The ledger: the rows that each commit adds and removes, from the actions of the log alone.

It proves what was read, so it shares no code with the planner's replay, the scans and the encoder (decision 0021). An
import contract in pyproject.toml enforces this. It reads no file; `ledger_log.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mirror_assets.source.actions import Actions, LiveFile, Tombstone

Vectors = Mapping[str, int]
"""The deletion vectors with which a file is live, by their ids, and the rows that each hides.

A file without a vector has the id "". One that is not live has no entry. Two entries are two copies of its rows: the
log names a file by its path and its vector.
"""

StoredRows = Callable[[str], "int | None"]
"""Returns the rows that are stored in the file at a path, hidden ones included; None if unknown."""

_NO_VECTOR = ""
_SAMPLES = 3


@dataclass(frozen=True)
class FilesBefore:
    """The live files of the version before a ledger's first commit: their stored rows by statistics, by path.

    Their vectors are read only if the actions don't show with which one a file was live: if an added file was live
    already or a removed one was not, or if a removed one has no vector, and the version's protocol allows them
    (`may_have_vectors`). Without `trusts_rows`, they are read for each file that also has no entry in `rows`.
    """

    rows: Mapping[str, int | None]
    read_vectors: Callable[[], Mapping[str, Vectors]]
    may_have_vectors: bool = True
    trusts_rows: bool = True

    @cached_property
    def vectors(self) -> Mapping[str, Vectors]:
        """The vectors of each file, by path."""
        return self.read_vectors()


NO_FILES = FilesBefore({}, dict)


@dataclass(frozen=True)
class FileChange:
    """What one commit does to one file: its vectors before and after.

    `is_overwritten`: after the commit, it is another file of the same name, so its old rows can't be counted.
    """

    path: str
    before: Vectors
    after: Vectors
    changes_data: bool
    is_overwritten: bool = False

    @property
    def copies(self) -> int:
        """How often the commit adds all stored rows; negative if it removes them."""
        return len(self.after) - len(self.before)

    def balance(self, stored: StoredRows) -> int | None:
        """Return the rows shown after the commit minus those before; None if that takes an unknown number of rows."""
        if self.is_overwritten:
            return None
        shown_again = sum(self.before.values()) - sum(self.after.values())
        if not self.copies:
            return shown_again
        rows = stored(self.path)
        return None if rows is None else rows * self.copies + shown_again

    def least(self, balance: int | None) -> int | None:
        """Return the least number of rows to read for it, by its balance; None if unknown."""
        if len(self.before) > 1 or len(self.after) > 1:  # two copies of its rows, of which a reader has one
            return 0
        return None if balance is None else abs(balance)


@dataclass(frozen=True)
class CommitFiles:
    """The files that a commit adds, removes or gives another vector, and the paths of its change files."""

    version: int
    files: tuple[FileChange, ...]
    change_files: tuple[str, ...]
    contradictions: tuple[str, ...] = ()

    @property
    def counted_paths(self) -> frozenset[str]:
        """The files whose number of rows decides the balance; a file with another vector needs none."""
        return frozenset(file.path for file in self.files if file.copies)

    def balance(self, stored: StoredRows) -> CommitBalance:
        """Return the commit's balance by these numbers of stored rows."""
        counted = [(file, file.balance(stored)) for file in self.files]
        data = [(file, rows) for file, rows in counted if file.changes_data]
        rewritten = _sum(rows for file, rows in counted if not file.changes_data)
        added = _sum(rows for file, rows in data if not file.before)
        removed = _sum(rows for file, rows in data if not file.after)
        is_split = not self.change_files and rewritten == 0 and all(not (x.before and x.after) for x, _ in data)
        found = list(self.contradictions)
        if rewritten:
            found.append(f"files that only rewrite rows (`dataChange` is false) change their number by {rewritten:+,}")
        return CommitBalance(
            version=self.version,
            rows=_sum(rows for _, rows in counted),
            new=added if is_split else None,
            old=-removed if is_split and removed is not None else None,
            copies=0 if self.change_files else _copies(data, added, removed),
            least=_sum(file.least(rows) for file, rows in data),
            change_files=self.change_files,
            contradictions=tuple(found),
        )


@dataclass(frozen=True)
class CommitBalance:
    """The rows of a commit by its actions.

    rows            rows that it adds minus rows that it removes; None if unproved: a file's number of rows is unknown
    new, old        rows to read for it from added and from removed files; None if the actions don't say: for change
                    files, and for a file with another vector, of which they have the difference only
    least           rows to read for it from data files, at least: a file with another vector hides and shows more than
                    the difference if it shows rows again; None if unproved
    copies          rows to read for it, at most, that it only copies from one file to another; None if unknown
    change_files    paths of its change files, of which the actions have no numbers of rows
    contradictions  what its actions say that can't be
    """

    version: int
    rows: int | None
    new: int | None = None
    old: int | None = None
    least: int | None = None
    copies: int | None = 0
    change_files: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Balances:
    """The balances of a slice's commits in order; `wrong_statistics` has a text for each file with wrong ones."""

    commits: tuple[CommitBalance, ...]
    wrong_statistics: tuple[str, ...] = ()

    @cached_property
    def unproved(self) -> tuple[int, ...]:
        """The commits whose balance is unknown."""
        return tuple(commit.version for commit in self.commits if commit.rows is None)

    @property
    def rows(self) -> int | None:
        """The balance of all commits; None if one is unproved."""
        return _sum(commit.rows for commit in self.commits)

    @property
    def new(self) -> int | None:
        """The rows to read from added files; None if the actions of a commit don't say."""
        return _sum(commit.new for commit in self.commits)

    @property
    def old(self) -> int | None:
        """The rows to read from removed files; None if the actions of a commit don't say."""
        return _sum(commit.old for commit in self.commits)

    @property
    def change_files(self) -> tuple[str, ...]:
        """The paths of all change files."""
        return tuple(path for commit in self.commits for path in commit.change_files)

    @property
    def copies(self) -> int | None:
        """The rows to read, at most, that did not change: of commits without change files that replace files."""
        return _sum(commit.copies for commit in self.commits)

    def weighted(self, as_version: int | None = None) -> int | None:
        """Return the sum of each commit's balance times the weight of its version, or all with that of `as_version`."""
        return _sum(
            None if one.rows is None else one.rows * weight(one.version if as_version is None else as_version)
            for one in self.commits
        )


def weight(version: int) -> int:
    """Return the weight of a commit's rows in `ScannedRows.weighted`, by its own formula: it must not be imported."""
    return (version * 2654435761) % 1000003 + 1


class RunningLedger:
    """Follows the files that commits touch, one commit after the other."""

    def __init__(self, read_before: Callable[[], FilesBefore | None]) -> None:
        """Start before the first commit.

        `read_before` returns the live files then, and is called for the first commit that touches a file; None if they
        can't be read: then a file that is removed was live, and one that is only added was not.
        """
        self._read_before = read_before
        self._live: dict[str, Vectors] = {}
        self._by_adds: dict[str, int] = {}
        self._by_removes: dict[str, int] = {}

    @cached_property
    def _before(self) -> FilesBefore | None:
        return self._read_before()

    def apply(self, version: int, actions: Actions) -> CommitFiles:
        """Return what the next commit does to files. Within a commit, an add counts after a remove of the same file."""
        added, removed = _by_path(actions.added), _by_path(actions.removed)
        files, found = list[FileChange](), list[str]()
        for path in dict.fromkeys((*removed, *added)):
            gone, come = removed.get(path, {}), added.get(path, {})
            before = self._vectors(path, gone)
            kept = {vector: rows for vector, rows in before.items() if vector not in gone}
            after = kept | {vector: file.hidden_rows for vector, file in come.items()}
            _note_rows(self._by_adds, come.values())
            _note_rows(self._by_removes, gone.values())
            found += _contradictions(path, before, gone, come, self.stored_rows(path))
            changes_data = any(file.data_change for file in (*gone.values(), *come.values()))
            is_overwritten = any(vector in gone and _differ(gone[vector], file) for vector, file in come.items())
            if is_overwritten:
                found.append(f"adds another file under the same name, {path}")
            files.append(FileChange(path, before, after, changes_data, is_overwritten))
            self._live[path] = after
        changes = tuple(dict.fromkeys(file.key for file in actions.change_files))
        more = [f"and {len(found) - _SAMPLES:,} more of this kind"] if len(found) > _SAMPLES else []
        return CommitFiles(version, tuple(files), changes, (*found[:_SAMPLES], *more))

    def stored_rows(self, path: str) -> int | None:
        """Return a file's rows by the statistics of its add, in these commits or before them, else of its remove."""
        known = self._by_adds.get(path)
        if known is None and self._before is not None:
            known = self._before.rows.get(path)
        return self._by_removes.get(path) if known is None else known

    def _vectors(self, path: str, gone: Mapping[str, LiveFile | Tombstone]) -> Vectors:
        """Return the vectors with which a file was live before the commit that removes it with those in `gone`."""
        if path in self._live:
            return self._live[path]
        as_removed = {vector: file.hidden_rows for vector, file in gone.items()}
        if self._before is None:
            return as_removed
        if path not in self._before.rows:
            # delta-rs takes a file that one commit removes and adds again, in this order, for removed.
            return self._before.vectors.get(path, {}) if gone or not self._before.trusts_rows else {}
        is_known = len(gone) == 1 and (_NO_VECTOR not in gone or not self._before.may_have_vectors)
        return as_removed if is_known else self._before.vectors.get(path, {})


def _copies(files: Sequence[tuple[FileChange, int | None]], added: int | None, removed: int | None) -> int | None:
    """Return the rows at most that a commit removes from some of these files and adds to others; None if unknown.

    `added` and `removed` are the rows of whole files. A file with another vector may also show and hide rows.
    """
    shows = any(not file.before or sum(file.before.values()) for file, _ in files)
    hides = any(not file.after or sum(file.after.values()) for file, _ in files)
    if not (shows and hides):
        return 0
    both = [file for file, _ in files if file.before and file.after]
    if added is None or removed is None or any(file.copies or file.is_overwritten for file in both):
        return None
    shown = added + sum(sum(file.before.values()) for file in both)
    hidden = -removed + sum(sum(file.after.values()) for file in both)
    return max(0, min(shown, hidden))


def _note_rows(rows: dict[str, int], files: Iterable[LiveFile | Tombstone]) -> None:
    """Add the rows that these actions have for their files."""
    rows |= {file.key: file.rows for file in files if file.rows is not None}


def _by_path(files: Iterable[LiveFile] | Iterable[Tombstone]) -> dict[str, dict[str, LiveFile | Tombstone]]:
    """Group actions by path, then by vector; an action that names a file twice counts once."""
    found: dict[str, dict[str, LiveFile | Tombstone]] = {}
    for file in files:
        found.setdefault(file.key, {})[file.vector.id if file.vector else _NO_VECTOR] = file
    return found


def _differ(gone: LiveFile | Tombstone, come: LiveFile | Tombstone) -> bool:
    """Whether a removed and an added file of one path and vector are different files, by size or number of rows."""
    sizes, rows = (gone.bytes, come.bytes), (gone.rows, come.rows)
    return (all(sizes) and len(set(sizes)) > 1) or (None not in rows and len(set(rows)) > 1 and come.data_change)


def _contradictions(
    path: str,
    before: Vectors,
    gone: Mapping[str, LiveFile | Tombstone],
    come: Mapping[str, LiveFile | Tombstone],
    stored: int | None,
) -> list[str]:
    found = list[str]()
    # Delta removes files of vectors that way when it drops their feature.
    if any(vector not in before and file.data_change for vector, file in gone.items()):
        found.append(f"removes {path}, which is not live")
    # Without a change of data, that is how writers change statistics or tags.
    if any(vector in before and vector not in gone and file.data_change for vector, file in come.items()):
        found.append(f"adds {path}, which is live already")
    if stored is not None and any(file.hidden_rows > stored for file in come.values()):
        found.append(f"hides more rows of {path} than the {stored:,} that it has by its statistics")
    return found


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Add the numbers; None if one is unknown."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
