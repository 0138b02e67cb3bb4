"""Plans slices of changes after the landed or staged ones: prepares settings, log and base state for the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mirror_assets.config.setting_values import Changes, OnDropColumn
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Manifest, SliceKind, SliceRecord
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.source_check import changed_expressions, table_columns, table_projection
from mirror_assets.redaction import without_values
from mirror_assets.source.actions import Metadata
from mirror_assets.source.batching import Limits
from mirror_assets.source.breaks import Break, BreakKind, Needs
from mirror_assets.source.commits import Commit, SourceState
from mirror_assets.source.errors import LogGap, SourceLoss
from mirror_assets.source.file_states import FileStates
from mirror_assets.source.log import CommitReplaced, DeltaLog
from mirror_assets.source.planner import Plan, PlannedSlice, PlanRequest, plan_slices, read_by_files
from mirror_assets.source.schema import canonical, parse_schema


@dataclass(frozen=True)
class BaseState:
    """What the next slice of changes builds on: the covered version, and the source's schema and table id there.

    `columns` are the columns that land, each with the fingerprint of its expression, and `where` that of the condition.
    `dropped` are the columns that the mirror retains from earlier slices of its epoch.
    `is_start`: the mirror began without a snapshot and has no rows; schema and table id are those of the first version
    to land, the next one. `is_planned`: the slice before was planned in this run, so its version is not read again.
    `read_feed`: it had rows from the change data feed, which is therefore on at the covered version. `digest` is that
    of the covered commit's file.
    """

    covered: int
    schema_string: str
    table_id: str
    columns: Mapping[str, str | None]
    where: str | None = None
    dropped: frozenset[str] = frozenset()
    is_start: bool = False
    is_planned: bool = False
    read_feed: bool = False
    digest: str | None = None

    @property
    def version(self) -> int:
        """Return the version at which the source has this schema and table id."""
        return self.covered + 1 if self.is_start else self.covered

    @classmethod
    def landed(cls, manifest: Manifest) -> BaseState:
        """Return the base that has landed."""
        return cls(
            covered=manifest.covered,
            schema_string=manifest.source_schema,
            table_id=manifest.source_table_id,
            columns={column.name: column.expression for column in manifest.live_columns},
            where=manifest.where,
            dropped=frozenset(manifest.dropped),
            is_start=_is_start(manifest, manifest.landed_rows),
            digest=manifest.commit_digest,
        )

    @classmethod
    def staged(cls, record: SliceRecord, base: BaseState | None) -> BaseState:
        """Return the base when the staged slice has landed after `base`."""
        columns = {column.name: column.expression for column in record.columns}
        known = base.columns.keys() | base.dropped if base else frozenset[str]()
        return cls(
            covered=record.slice.last,
            schema_string=record.source_schema,
            table_id=record.source_table_id,
            columns=columns,
            where=record.where,
            dropped=frozenset(known - columns.keys()),
            is_start=_is_start(record, record.markers.total),
            is_planned=record.slice.first > 0,
            read_feed=record.slice.first > 0 and record.read.total > 0 and record.compared is None,
            digest=record.commit_digest,
        )


def _is_start(newest: Manifest | SliceRecord, rows: int) -> bool:
    return newest.generation == 1 and newest.kind is not SliceKind.SNAPSHOT and rows == 0


def dropped_columns(table: TableSettings, base: BaseState) -> frozenset[str] | Break:
    """Return the columns that the mirror retains but that no longer land, or the break that new settings make.

    A column that is removed from `columns` is treated as one that the source drops. An added column has values in the
    source that no later commit contains, and so does another expression or condition.
    """
    columns = table_columns(table, parse_schema(base.schema_string))
    landing = {column.name for column in columns}
    added, removed = landing - base.columns.keys(), base.columns.keys() - landing
    if changed := changed_expressions(table, columns, base.columns, base.where):
        message = changed
    elif added:
        message = f"`columns` now has {', '.join(f'`{name}`' for name in sorted(added))}, whose values have not landed"
    elif removed and table.on_drop_column is OnDropColumn.REBUILD:
        names = ", ".join(f"`{name}`" for name in sorted(removed))
        message = f"`columns` no longer has {names}, and on_drop_column is rebuild"
    else:
        return base.dropped | removed
    return Break(base.covered + 1, BreakKind.COLUMNS_CHANGED, message)


# A partition key gives the range of its slice: no limit may split it again.
NO_LIMITS = Limits(2**62, 2**62, 2**62, mixes_rewrites=True, max_files=2**62)


def limits_of(table: TableSettings) -> Limits:
    """Return the limits of a slice of the table."""
    limits = table.slices
    return Limits(limits.max_commits, limits.max_rows, limits.max_bytes)


def plan_changes(
    context: TableContext,
    base: BaseState,
    epoch: int,
    tip: SourceState,
    limits: Limits,
    boundaries: frozenset[int],
    last: int | None = None,
    at_most: int | None = None,
) -> Plan:
    """Return the slices of the commits after `base`, up to `last` or the newest, and the break after them, if any.

    With `at_most`, only the first slices are planned, and few commits after them are read. Commits without a change
    data feed are read by files. A log that was rolled back is a break. Raises what the log raises, LogGap when versions
    are compared of which one can't be read any more, and SOURCE_UNAVAILABLE where the log lists less than it holds.
    """
    table, log = context.table, context.log
    dropped = dropped_columns(table, base)
    if isinstance(dropped, Break):
        return Plan((), dropped)
    log.require_landed(tip, base.covered, base.table_id)
    end = tip.version if last is None else min(last, tip.version)
    is_tracked = table.changes is Changes.ROW_TRACKING
    if is_tracked and not base.is_planned and not log.state(base.covered).metadata.row_tracking:
        message = f"row tracking was off at version {base.covered}, which has landed"
        return Plan((), Break(base.covered, BreakKind.ROW_TRACKING_DISABLED, message))
    digest = base.digest if tip.table_id == base.table_id and not base.is_planned else None
    if tip.version == base.covered and digest not in (None, tip.digest):
        return Plan((), _rolled_back(base))
    used = table_projection(context.config, table, parse_schema(base.schema_string)).uses
    listed = table.listed_columns
    request = PlanRequest(
        covered=base.covered,
        epoch=epoch,
        tip=end,
        tip_table_id=tip.table_id,
        commits=_CommitsToPlan(table, log, base, tip).read(end, digest),
        schema_string=base.schema_string,
        needs=Needs(
            table_id=base.table_id,
            keys=table.mirror_keys,
            columns=None if listed is None else tuple(dict.fromkeys((*listed, *table.computed, *used))),
            used=frozenset(used),
            dropped=dropped,
            keep_dropped=table.on_drop_column is OnDropColumn.KEEP,
            row_tracking=is_tracked,
            append_only=table.changes is Changes.APPEND_ONLY,
        ),
        net=table.is_net,
        limits=limits,
        target_rows=table.files.target_rows,
        boundaries=boundaries,
        covered_table_id=_id_at(log, base) if tip.table_id != base.table_id else base.table_id,
    )
    try:
        plan = plan_slices(request, at_most)
    except CommitReplaced:
        return Plan((), _rolled_back(base))
    compared = next((planned.compared for planned in plan.slices if planned.compared), None)
    if compared is not None and not base.is_planned:
        log.state(compared.before)
    return plan


def _rolled_back(base: BaseState) -> Break:
    message = f"the source's log was rolled back: its commit {base.covered} is another one than the landed one"
    return Break(base.covered, BreakKind.TABLE_REPLACED, message)


# A remote store answers as many requests for commits at once as it has threads; more commits cost memory only. Few are
# read first: they may name any number of files, also where few are live.
_FIRST_COMMITS, _MOST_COMMITS = 4, 256
# Python's objects for a file that a commit names take up to 260 bytes; of a table with fewer live files, no commit is
# expected to name more than these.
_FILES_AT_ONCE = 200_000


class _CommitsToPlan:
    """The commits after `base`, as the planner needs them, of which some are held at a time."""

    def __init__(self, table: TableSettings, log: DeltaLog, base: BaseState, tip: SourceState) -> None:
        self._table, self._log, self._base, self._tip = table, log, base, tip
        self._metadata: Metadata | None = None
        self._has_feed: bool | None = None

    def read(self, end: int, digest: str | None) -> Iterator[Commit]:
        """Yield the commits up to `end`. `digest` is that of the covered one, as in `DeltaLog.commits`."""
        first, with_files = self._base.covered + 1, self._table.changes.compares_versions
        size = max(1, min(_FIRST_COMMITS, _FILES_AT_ONCE // max(1, self._tip.files)))
        while first <= end:
            last = min(end, first + size - 1)
            found = self._log.commits(first, last, with_files=with_files, after=digest, before=self._metadata)
            yield from self._prepared(found)
            first, digest = found[-1].version + 1, None
            named = sum(commit.named_files for commit in found)
            size = max(1, min(_MOST_COMMITS, 4 * size, _FILES_AT_ONCE * len(found) // max(1, named)))

    def _prepared(self, commits: Sequence[Commit]) -> Sequence[Commit]:
        """Return the commits, which follow those of the call before, with what other commits and settings decide."""
        table, log, first = self._table, self._log, commits[0].version
        if table.changes is Changes.ROW_TRACKING:
            commits = [_tracked(commit, keyless=table.is_keyless) for commit in commits]
        unbelievable = {} if self._base.is_start else _unbelievable(log, first - 1, self._base.table_id, commits)
        by_files = self._by_files(commits)
        if table.changes is Changes.FEED and (by_files := by_files | unbelievable):
            begin, last = min(by_files), commits[-1].version
            commits = commits[: begin - first]
            before = _newest(commits) or self._metadata
            commits = [*commits, *log.commits(begin, last, with_files=True, before=before)]
        self._metadata = _newest(commits) or self._metadata
        return [
            replace(
                commit,
                changes_data=commit.changes_data or commit.version in unbelievable,
                rewrites=commit.rewrites or commit.version in unbelievable,
                by_files=by_files.get(commit.version),
            )
            for commit in commits
        ]

    def _by_files(self, commits: Sequence[Commit]) -> dict[int, str]:
        """Return the commits to read by files, each with the reason why its change data feed can't be read."""
        if self._table.changes is Changes.FILES:
            return {commit.version: "" for commit in commits}
        if self._table.changes is not Changes.FEED:
            return {}
        found, reshaped = dict[int, str](), self._reshaped(commits)
        is_on = _has_feed(self._log, self._base, commits, self._tip) if self._has_feed is None else self._has_feed
        for commit in commits:
            is_on = commit.metadata.feed_enabled if commit.metadata else is_on
            if commit.version == 0:
                continue  # no version before it
            if not is_on:
                found[commit.version] = f"the change data feed was off at version {commit.version}"
            elif commit.only_feed:
                found[commit.version] = f"version {commit.version} has change files, but adds and removes no file"
            elif commit.version in reshaped:
                found[commit.version] = f"version {commit.version} replaces files by others of another schema"
        self._has_feed = is_on
        return found

    def _reshaped(self, commits: Sequence[Commit]) -> frozenset[int]:
        """Return the commits whose old rows need the schema, or the partition columns, of the version before them."""
        changing = [commit for commit in commits if commit.metadata]
        if not changing:
            return frozenset()
        try:
            before = self._metadata or self._log.state(self._base.version).metadata
        except LogGap:
            return frozenset(commit.version for commit in changing)
        found = set[int]()
        for commit in changing:
            after = commit.metadata
            assert after is not None  # noqa: S101 chosen above
            has_other_schema = canonical(after.schema_string) != canonical(before.schema_string)
            replaces = commit.rewrites and not commit.has_cdc and has_other_schema
            if replaces or after.partition_columns != before.partition_columns:
                found.add(commit.version)
            before = after
        return frozenset(found)


def _newest(commits: Sequence[Commit]) -> Metadata | None:
    return next((one.metadata for one in reversed(commits) if one.metadata), None)


def _unbelievable(log: DeltaLog, before: int, table_id: str, commits: Sequence[Commit]) -> dict[int, str]:
    """Return the commits that change rows by files that claim to change none, each with what contradicts it.

    The commits follow the version `before`, of the table with this id.
    """
    suspects = [commit.version for commit in commits if commit.rewrite_balance]
    if not suspects:
        return {}
    actions_of = log.read_actions(before + 1, suspects[-1])
    try:
        states = FileStates.after(log, before, table_id, actions_of)
    except LogGap:
        return {}
    found: dict[int, str] = {}
    for version, actions in actions_of:
        # A file that is added while it is live replaces itself.
        rows = sum(moved.balance or 0 for moved in list(states.apply(actions)) if not moved.data_change)
        if version in suspects and rows:
            found[version] = f"version {version} claims to change no data, and changes the number of rows by {rows:+,}"
    return found


def _has_feed(log: DeltaLog, base: BaseState, commits: Sequence[Commit], tip: SourceState) -> bool:
    """Return whether the feed was on at the base; a slice by files may have ended while it was off."""
    if base.is_start or base.read_feed:  # of a start, the version to begin with was checked
        return True
    if commits[-1].version == tip.version and not any(commit.metadata for commit in commits):
        return tip.feed_enabled
    try:
        return log.state(base.covered).feed_enabled
    except LogGap:
        return True


def instead_of_feed(context: TableContext, planned: PlannedSlice, error: MirrorError) -> PlannedSlice | None:
    """Return the slice to be read by files, because its change data feed caused an error; None if that is impossible.

    Only a lost file or feed is sure to be the feed's fault; for other errors, the slice must have change files.
    """
    if context.table.changes is not Changes.FEED or planned.compared or planned.is_repair or not planned.first:
        return None
    try:
        commits = context.log.commits(planned.first, planned.last, with_files=True)
        is_lost = isinstance(error, SourceLoss)
        if not is_lost and not any(commit.has_cdc for commit in commits):
            return None
        instead = read_by_files(planned, commits, without_values(error.what).rstrip("."))
        if instead.compared is not None:
            context.log.state(instead.compared.before)
    except LogGap:
        return None
    return instead


def _tracked(commit: Commit, *, keyless: bool) -> Commit:
    """Return the commit without the rows that it only rewrites, unless their key is the row id and changed.

    Its bytes are those of the data files, also where it has change files, which row tracking doesn't read. A file with
    another deletion vector is read once.
    """
    is_new_key = keyless and commit.renumbered
    rows = commit.rows + (commit.renumbered_rows if is_new_key else 0)
    changes = commit.changes_data or is_new_key
    read = {file.path: file.bytes for file in (*commit.removed, *commit.added)} if changes else {}
    return replace(commit, rows=rows, changes_data=changes, bytes=sum(read.values()))


def _id_at(log: DeltaLog, base: BaseState) -> str | None:
    """Return the table id at the base's version, or None when the log no longer has it."""
    try:
        return log.state(base.version).table_id
    except LogGap:
        return None
