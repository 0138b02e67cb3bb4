"""The check `row_conservation`: the rows of the log are those that Spark read, and those that are in the staged parts.

The ledger says what the log has. What Spark counted while it read is only a hint: an Observation counts the rows of a
task twice that ran twice. So a count that differs starts a second count, and only that one can fail the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from mirror_assets.landing.format import ScannedRows, SliceKind, SliceRecord
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.ledger import Balances, weight
from mirror_assets.verify.ledger_log import SliceLedger

ROW_CONSERVATION: Final = "row_conservation"
_SAMPLES = 5


@dataclass(frozen=True)
class CountedRows:
    """New rows (inserts and post-images) and old rows (deletes and pre-images).

    `preimages` and `postimages` are those of them that come from change files.
    """

    new: int = 0
    old: int = 0
    preimages: int = 0
    postimages: int = 0

    @property
    def balance(self) -> int:
        """New rows minus old ones."""
        return self.new - self.old

    def __add__(self, other: CountedRows) -> CountedRows:
        """Add both, kind by kind."""
        return CountedRows(
            self.new + other.new,
            self.old + other.old,
            self.preimages + other.preimages,
            self.postimages + other.postimages,
        )


@dataclass(frozen=True)
class ScannedCounts:
    """The rows of a slice by the version of their commit: all rows, and those that pass `where`.

    Rows that carry no version (of snapshots, and of compared versions) are those of the slice's last version.
    """

    read: Mapping[int, CountedRows]
    kept: Mapping[int, CountedRows]


RowCounter = Callable[[], ScannedCounts]
"""Reads the rows of a slice again; returns the counts, whatever number of times Spark runs its tasks."""


@dataclass(frozen=True)
class _Seen:
    """A count of a slice's rows: all, if they were counted before `where`, and those that pass `where`."""

    read: ScannedRows | None
    kept: CountedRows
    by_version: Mapping[int, CountedRows] = field(default_factory=dict)

    @classmethod
    def observed(cls, record: SliceRecord) -> _Seen:
        """Return what Spark observed while it encoded the slice."""
        read = record.read
        return cls(record.scanned, CountedRows(read.insert + read.update_postimage, read.delete + read.update_preimage))

    @classmethod
    def counted(cls, counts: ScannedCounts) -> _Seen:
        """Return a second count."""
        read, kept = sum(counts.read.values(), CountedRows()), sum(counts.kept.values(), CountedRows())
        weighted = sum(weight(version) * rows.balance for version, rows in counts.read.items())
        scanned = ScannedRows(
            new=read.new, old=read.old, preimages=read.preimages, postimages=read.postimages, weighted=weighted
        )
        return cls(scanned, kept, counts.read)


@dataclass(frozen=True)
class SliceRows:
    """A staged slice, and how its rows are counted.

    `by_commit`: its rows are those of its commits, and carry their versions. Otherwise two versions were compared, of
    which the log has only the difference.
    """

    record: SliceRecord
    ledger: SliceLedger
    by_commit: bool = True


def row_conservation(rows: SliceRows, counter: RowCounter | None = None) -> CheckResult:
    """Check that no row of the log was lost, doubled or invented on its way to the staged parts.

    The statistics of the log can be wrong: where a number differs, footers decide, and the result has a warning.
    Without a `counter`, numbers that Spark observed can't be counted again, and fail the check. Raises what reading the
    log and the counter raise.
    """
    record, ledger = rows.record, rows.ledger
    if record.kind is SliceKind.REPAIR:
        return _of_repair(record)
    if record.kind is SliceKind.START:
        found = [f"{record.table}: a start slice has {record.markers.total:,} rows"] if record.markers.total else []
        return CheckResult(ROW_CONSERVATION, tuple(found), {"written": record.markers.total})
    seen, balances = _Seen.observed(record), ledger.by_statistics
    problems = _problems(rows, seen, balances)
    if problems:
        balances = ledger.by_footers
        problems = _problems(rows, seen, balances)
    if problems and counter is not None:
        seen = _Seen.counted(counter())
        problems = _problems(rows, seen, balances)
        problems += _differing_commits(rows, seen, balances) if problems else []
    unproved = len(balances.unproved)
    metadata: dict[str, int | float | str] = {
        "read": seen.kept.new + seen.kept.old,
        "written": record.markers.total,
        "commits_proved": len(balances.commits) - unproved,
        "commits_unproved": unproved,
    }
    texts = tuple(f"{record.table}, {problem}" for problem in problems)
    return CheckResult(ROW_CONSERVATION, texts, metadata, warning=_warning(record, balances), unproved=unproved)


def _of_repair(record: SliceRecord) -> CheckResult:
    """Compare the parts of a repair with the counts of the comparison that found it: upserts have no balance."""
    written, compared = record.markers, _Seen.observed(record).kept
    counted = compared.new, compared.old
    landed = written.inserts + written.updates + written.upserts, written.updates + written.deletes
    problem = "{}: the parts have {:,} new and {:,} old rows, and the comparison with the mirror has {:,} and {:,}"
    found = [] if counted == landed else [problem.format(record.table, *landed, *counted)]
    return CheckResult(ROW_CONSERVATION, tuple(found), {"read": record.read.total, "written": written.total})


def _problems(rows: SliceRows, seen: _Seen, balances: Balances) -> list[str]:
    """Return all differences between log, reading and parts."""
    found = list(_landed_problems(rows.record, seen.kept, balances))
    if seen.read is not None:
        found += _read_problems(rows, seen.read, balances)
        if rows.by_commit:
            found += _kind_problems(rows, seen.read, balances)
    key = rows.record.slice
    is_one = rows.record.kind is SliceKind.SNAPSHOT or key.first == key.last
    versions = f"version {key.last}" if is_one else f"versions {key.first} to {key.last}"
    return [f"{versions}: {problem}" for problem in found]


def _landed_problems(record: SliceRecord, kept: CountedRows, balances: Balances) -> Iterator[str]:
    """Compare the parts with the log, if all rows land, and with the rows that passed `where`."""
    written = record.markers
    landed = written.inserts - written.deletes
    if record.where is None and balances.rows is not None and landed != balances.rows:
        yield f"the parts have {landed:+,} rows (INSERT minus DELETE), {balances.rows:+,} by the log"
    if record.changed_keys is not None and written.total != record.changed_keys:
        yield f"the parts have {written.total:,} changes, and {record.changed_keys:,} keys differ between the versions"
    if landed != kept.balance:
        yield f"the parts have {landed:+,} rows (INSERT minus DELETE), {kept.balance:+,} were read to land"
    if record.kind is SliceKind.CHANGES:
        new, old = kept.new - written.inserts - written.updates, kept.old - written.updates - written.deletes
        # Rows that a commit only copies to another file are read, and don't land.
        is_copied = new == old >= 0 and (balances.copies is None or new <= balances.copies)
        if (new or old) and not is_copied:
            yield (
                f"the parts have {written.inserts + written.updates:,} new and {written.updates + written.deletes:,} "
                f"old rows, {kept.new:,} and {kept.old:,} were read to land"
            )


def _read_problems(rows: SliceRows, read: ScannedRows, balances: Balances) -> Iterator[str]:
    """Compare what was read with the balances of the log: in all, and weighted by commit."""
    if read.preimages != read.postimages:
        yield f"change files have {read.preimages:,} pre-images and {read.postimages:,} post-images"
    if balances.rows is None:
        return
    balance = read.new - read.old
    if balance != balances.rows:
        yield f"{balance:+,} rows were read (new minus old), {balances.rows:+,} by the log"
    elif read.weighted != balances.weighted(None if rows.by_commit else rows.record.slice.last):
        yield "the rows read are not those of the log's commits, though their number is the same"


def _kind_problems(rows: SliceRows, read: ScannedRows, balances: Balances) -> Iterator[str]:
    """Compare new and old rows each, where the actions have both; else the total, with footers of change files.

    Of a file with another vector, the actions have the difference only: then the total is the least that is read.
    """
    if balances.new is not None and balances.old is not None:
        if (read.new, read.old) != (balances.new, balances.old):
            by_log = f"{balances.new:,} and {balances.old:,} by the log"
            yield f"{read.new:,} new and {read.old:,} old rows were read, {by_log}"
        return
    others = [commit for commit in balances.commits if not commit.change_files]
    least = [commit.least for commit in others]
    if None in least:
        return
    in_change_files = rows.ledger.rows_in(balances.change_files)
    if in_change_files is None:
        return
    found, expected = read.new + read.old, in_change_files + sum(number for number in least if number is not None)
    is_exact = all(commit.new is not None and commit.old is not None for commit in others)
    if found < expected or (is_exact and found != expected):
        some = "" if is_exact else "at least "
        yield f"{found:,} rows were read, {some}{expected:,} by change files and log"


def _differing_commits(rows: SliceRows, seen: _Seen, balances: Balances) -> list[str]:
    """Name the commits of which a second count has other rows than the log."""
    if not rows.by_commit:
        return []

    known = {commit.version for commit in balances.commits}
    read = {version: rows.balance for version, rows in seen.by_version.items()}
    found = [
        f"version {commit.version}: {balance:+,} rows were read, {commit.rows:+,} by the log"
        for commit in balances.commits
        if (balance := read.get(commit.version, 0)) != commit.rows and commit.rows is not None
    ]
    found += [f"version {one}: rows were read, and it is not in the slice" for one in read.keys() - known]
    more = [f"and {len(found) - _SAMPLES:,} more versions"] if len(found) > _SAMPLES else []
    return [*found[:_SAMPLES], *more]


def _warning(record: SliceRecord, balances: Balances) -> str:
    """Return what a person should know of a slice that may land: wrong statistics, unproved and odd commits."""
    texts = list[str]()
    if wrong := balances.wrong_statistics:
        more = f", and {len(wrong) - _SAMPLES:,} more files" if len(wrong) > _SAMPLES else ""
        texts.append(f"the source's statistics are wrong, so footers decided: {'; '.join(wrong[:_SAMPLES])}{more}")
    if unproved := balances.unproved:
        named = ", ".join(map(str, unproved[:_SAMPLES])) + (", …" if len(unproved) > _SAMPLES else "")
        texts.append(f"unproved, because files without statistics are lost: {named}")
    odd = [f"version {one.version} {text}" for one in balances.commits for text in one.contradictions]
    if odd:
        more = f", and {len(odd) - _SAMPLES:,} more" if len(odd) > _SAMPLES else ""
        texts.append(f"{'; '.join(odd[:_SAMPLES])}{more}")
    return f"{record.table}: {'. '.join(texts)}" if texts else ""
