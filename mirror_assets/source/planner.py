"""Plans slices: which commits are mirrored together, in how many parts, and where mirroring stops (decision 0002).

A pure function of the log and the settings: the same input gives the same plan, so a retry writes the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from mirror_assets.source.batching import (
    Compared,
    DifferingFiles,
    FileChunk,
    Limits,
    PartAssignment,
    assign_parts,
    batch_commits,
    parts_for,
    rows_of_part,
)
from mirror_assets.source.breaks import Break, BreakKind, Needs, dropped_columns, find_break, is_beside, row_break
from mirror_assets.source.commits import Commit, CommitRange, SourceState
from mirror_assets.source.schema import Schema, canonical, parse_schema


@dataclass(frozen=True)
class PlanRequest:
    """The input of a plan.

    `commits` are those of [covered + 1, tip], and are taken once, as slices need them; `schema_string` and the id in
    `needs` are the source's at `covered`, as landed; `tip_table_id` is its id now. Where both ids differ, commits are
    planned only if `covered_table_id`, the id that the log has for `covered` now, is the landed one: else they may be
    another table's from the first on.
    `boundaries` are last versions of slices that are registered already; cutting there again preserves their keys.
    `net`: a slice has one change per key, whatever the number of its commits.
    """

    covered: int
    epoch: int
    tip: int
    tip_table_id: str
    commits: Iterable[Commit]
    schema_string: str
    needs: Needs
    limits: Limits
    target_rows: int
    boundaries: frozenset[int] = frozenset()
    net: bool = False
    covered_table_id: str | None = None


@dataclass(frozen=True)
class PlannedSlice:
    """One slice: commits `first` to `last` of one schema, and where their rows go.

    `assignments` has an entry for every commit that changes data; `parts` is 0 when none does. A part should hold
    `target_rows` at most, fewer than the setting for a wide table.
    `compared`: it has net changes, read from the files that differ between two versions; rows and bytes are those of
    these files. A snapshot slice has `first` 0 and the whole table, or one `chunk` of it; then rows, bytes and parts
    are the chunk's. A start slice has `first` 0 and no rows, because the versions that it covers do not land. A repair
    slice has the difference between the mirror and the source at `last`. `digests` are those of the commits' files: of
    all commits of a slice of changes, of the last one of other slices.
    """

    epoch: int
    first: int
    last: int
    is_snapshot: bool
    rows: int
    bytes: int
    first_commit_ms: int
    last_commit_ms: int
    schema_string: str
    table_id: str
    assignments: tuple[PartAssignment, ...]
    parts: int
    target_rows: int
    rows_exact: bool = True
    compared: Compared | None = None
    chunk: FileChunk | None = None
    is_start: bool = False
    is_repair: bool = False
    digests: tuple[str, ...] = ()

    @property
    def commits(self) -> CommitRange:
        """The commits of a slice of changes."""
        versions = range(self.last + 1 - len(self.digests), self.last + 1)
        return CommitRange(self.first, self.last, self.table_id, dict(zip(versions, self.digests, strict=True)))

    @cached_property
    def schema(self) -> Schema:
        """The source's schema at `last`."""
        return parse_schema(self.schema_string)


@dataclass(frozen=True)
class Plan:
    """Pending slices in order; `stop` is the break after them, or None when they reach the tip, or more follow."""

    slices: tuple[PlannedSlice, ...]
    stop: Break | None = None


def plan_slices(request: PlanRequest, at_most: int | None = None) -> Plan:
    """Return the slices of [covered + 1, tip], or up to the break; only the first ones with `at_most`.

    It holds the commits of two slices at most, and takes one more than its slices have. Raises ValueError when
    `commits` are not exactly these versions, and SCHEMA_UNREADABLE.
    """
    landed_id = request.needs.table_id
    another = f"the source is another table now (id {request.tip_table_id}; landed was {landed_id})"
    if request.tip < request.covered:
        shorter = f"the source ends at version {request.tip}, but version {request.covered} of it has landed"
        message = shorter if request.tip_table_id == landed_id else another
        return Plan((), Break(request.tip, BreakKind.TABLE_REPLACED, message))
    if landed_id not in (request.tip_table_id, request.covered_table_id):
        return Plan((), Break(request.covered + 1, BreakKind.TABLE_REPLACED, another))
    followed = _FollowedCommits(request)
    groups = batch_commits(followed, request.limits, followed.cuts)
    slices = (_slice(request, group, followed.schema_string(group[-1].version)) for group in groups)
    return Plan(tuple(islice(slices, at_most)), followed.stop)


class _FollowedCommits:
    """The commits up to the first break, and what is known of those that were iterated over.

    `cuts` are the last versions of slices before another schema or another way of reading, and those that are
    registered; `stop` is the break.
    """

    def __init__(self, request: PlanRequest) -> None:
        self.cuts = set(request.boundaries)
        self.stop: Break | None = None
        self._request = request
        self._texts = [(request.covered, canonical(request.schema_string))]

    def schema_string(self, version: int) -> str:
        """Return the schema at a version that was iterated over."""
        return next(text for since, text in reversed(self._texts) if since <= version)

    def __iter__(self) -> Iterator[Commit]:
        version, needs = self._request.covered, self._request.needs
        schema, is_by_files = parse_schema(self._texts[0][1]), False
        for commit in self._request.commits:
            self._require(is_expected=commit.version == version + 1)
            if is_by_files != (commit.by_files is not None):
                is_by_files = not is_by_files
                self.cuts.add(version)
            if commit.metadata is None:
                self.stop = row_break(commit, needs)
            else:
                after = parse_schema(commit.metadata.schema_string)
                self.stop = find_break(schema, commit, commit.metadata, after, needs)
                if self.stop is None and not is_beside(schema, after, needs):
                    self.cuts.add(version)
                    needs = replace(needs, dropped=needs.dropped | dropped_columns(schema, after, needs))
                if commit.metadata.schema_string != self._texts[-1][1]:
                    self._texts.append((commit.version, commit.metadata.schema_string))
                schema = after
            if self.stop is not None:
                return
            version = commit.version
            yield commit
        self._require(is_expected=version == self._request.tip)

    def _require(self, *, is_expected: bool) -> None:
        if not is_expected:
            raise ValueError(f"commits are not those of {self._request.covered + 1} to {self._request.tip}")


def snapshot_slice(state: SourceState, epoch: int, target_rows: int, chunk: FileChunk | None = None) -> PlannedSlice:
    """Return the slice with the whole table as of the state's version, or one chunk of it."""
    rows = chunk.rows if chunk else state.likely_rows
    wanted = rows_of_part(target_rows, len(state.schema.fields))
    parts = parts_for(rows, wanted)
    return PlannedSlice(
        epoch=epoch,
        first=0,
        last=state.version,
        is_snapshot=True,
        rows=rows,
        bytes=chunk.bytes if chunk else state.bytes,
        first_commit_ms=state.timestamp_ms,
        last_commit_ms=state.timestamp_ms,
        schema_string=state.schema_string,
        table_id=state.table_id,
        assignments=(PartAssignment(state.version, 0, parts),),
        parts=parts,
        target_rows=wanted,
        rows_exact=state.rows is not None and (chunk is None or state.rows == state.stored_rows),
        chunk=chunk,
        digests=(state.digest,),
    )


def read_by_files(planned: PlannedSlice, commits: Sequence[Commit], because: str = "") -> PlannedSlice:
    """Return the slice of these commits, whose files are known, read by comparing versions instead of the feed."""
    reads = DifferingFiles(commits)
    compared = reads.compared(because)
    parts = parts_for(min(reads.changed_rows, reads.rows), planned.target_rows) if compared else 0
    return replace(
        planned,
        rows=reads.rows,
        bytes=reads.bytes,
        assignments=(PartAssignment(planned.last, 0, parts),) if compared else (),
        parts=parts,
        compared=compared,
    )


def _slice(request: PlanRequest, commits: Sequence[Commit], schema_string: str) -> PlannedSlice:
    target_rows = rows_of_part(request.target_rows, len(parse_schema(schema_string).fields))
    rows = sum(commit.rows for commit in commits)
    if not (request.needs.append_only or request.net):
        assignments = assign_parts(commits, target_rows)
    elif any(commit.changes_data for commit in commits):
        # Appended rows and net changes need no order, so all commits share the fewest parts.
        assignments = (PartAssignment(commits[-1].version, 0, parts_for(rows, target_rows)),)
    else:
        assignments = ()
    planned = PlannedSlice(
        epoch=request.epoch,
        first=commits[0].version,
        last=commits[-1].version,
        is_snapshot=False,
        rows=rows,
        bytes=sum(commit.bytes for commit in commits),
        first_commit_ms=commits[0].timestamp_ms,
        last_commit_ms=commits[-1].timestamp_ms,
        schema_string=schema_string,
        table_id=request.needs.table_id,
        assignments=assignments,
        parts=max((assignment.first_part + assignment.parts for assignment in assignments), default=0),
        target_rows=target_rows,
        rows_exact=all(commit.rows_exact for commit in commits),
        digests=tuple(commit.digest for commit in commits),
    )
    because = commits[0].by_files
    return planned if because is None else read_by_files(planned, commits, because)
