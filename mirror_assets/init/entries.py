"""What the file says of each table: its settings, what was found, and what is missing for it to be mirrored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mirror_assets.config import Changes
from mirror_assets.config.table_settings import CatalogTable, RetentionLimits, StorePath
from mirror_assets.errors import MirrorError
from mirror_assets.init.propose_keys import KeyProposal, Proof
from mirror_assets.init.survey import Survey, SurveyedTable
from mirror_assets.landing.names import TableName
from mirror_assets.source.sql_names import table_at
from mirror_assets.source.table_properties import ROW_TRACKING_COST, Retention, feed_consequence

_DAY = 86_400
_KEPT_DAYS = 7


@dataclass(frozen=True)
class Statement:
    """A statement that is missing, and why; one that is not `needed` only makes the mirror safer."""

    sql: str
    why: str
    needed: bool = True


@dataclass(frozen=True)
class TableEntry:
    """A table of the file.

    `missing` is why it is written as a comment, None for one that can be mirrored as it is. `needs_key_only`: its feed
    is on, so a key would do in place of its statement.
    """

    name: TableName
    source: StorePath | CatalogTable
    changes: Changes
    keys: KeyProposal | None = None
    columns: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    missing: str | None = None
    statements: tuple[Statement, ...] = ()
    needs_key_only: bool = False


@dataclass(frozen=True)
class Unreadable:
    """A table that can't be read, and why."""

    path: str
    why: str


def table_entry(table: SurveyedTable, survey: Survey, keys: KeyProposal | None, doubt: str | None) -> TableEntry:
    """Return the table's entry. `doubt` is why no key could be looked for, None where none was found."""
    changes, off = _changes(survey, keys, doubt or "no key was found")
    shown = keys if keys and (changes is Changes.FEED or keys.proof is not Proof.NOT_PROVEN) else None
    columns = tuple(field.name for field in survey.fields) if survey.unfit else None
    problems = (*survey.problems(changes, shown.columns if shown else ()), *_unwritable(columns or ()))
    return TableEntry(
        name=table.name,
        source=table.table.source,
        changes=changes,
        keys=shown,
        columns=columns,
        notes=tuple(_notes(survey)),
        missing="; ".join(filter(None, (off, *problems))) or None,
        statements=(
            *_statements(survey, changes, table.table.sql_name, needed=off is not None),
            *_retention(survey, table.table.sql_name),
        ),
        needs_key_only=off is not None and survey.state.feed_enabled,
    )


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural where that is due."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unwritable(columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        if "${" in column:
            yield f"mirror.yaml takes the `${{` in the name of the column {column!r} for an environment variable"


def _changes(survey: Survey, keys: KeyProposal | None, keyless: str) -> tuple[Changes, str | None]:
    """Return how changes are found, and what is off that it needs; `keyless` says why there are no keys."""
    state = survey.state
    if state.feed_enabled and keys:
        return Changes.FEED, None
    if state.metadata.row_tracking:
        return Changes.ROW_TRACKING, None
    if survey.append_only:
        return Changes.APPEND_ONLY, None
    if keys:
        return Changes.FEED, "the change data feed is off"
    return Changes.ROW_TRACKING, f"{keyless}; without keys row tracking is needed, which is off"


def _notes(survey: Survey) -> Iterator[str]:
    state = survey.state
    rows = "rows not counted" if state.rows is None else counted(state.rows, "row")
    yield f"Version {state.version}, {rows}, {counted(state.files, 'file')}; {survey.switched_on}."
    for error in survey.unfit:
        yield f"Without `{error.column}`: a landing file can't hold its type, {error.column_type}."
    for issue in survey.direct_lake:
        yield f"Direct Lake can't load `{issue.column}` of the source: it {issue.message}."


def _statements(survey: Survey, changes: Changes, sql_name: str | None, *, needed: bool) -> Iterator[Statement]:
    table = sql_name or table_at(survey.state.uri)
    if needed and changes is Changes.FEED:
        sql = f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        yield Statement(sql, f"The change data feed is off. {feed_consequence(survey.state.protocol)}")
    if needed and changes is Changes.ROW_TRACKING:
        sql = f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableRowTracking = true)"
        yield Statement(sql, f"No key was found; with row tracking none is needed. {ROW_TRACKING_COST}")


def _retention(survey: Survey, sql_name: str | None) -> Iterator[Statement]:
    """Yield the statement for a table that forgets commits so soon that the retention check would always warn."""
    limit = RetentionLimits().warn_seconds or 0
    try:
        retention = Retention.of(survey.state.uri.replace("`", "``"), survey.state.metadata)
    except MirrorError:
        return
    if retention.first.seconds < limit:
        days = retention.first.seconds / _DAY
        why = f"Commits can be read for {days:.1f} days only ({retention.first.name}): a mirror that stops loses them."
        yield Statement(retention.keeping(_KEPT_DAYS * _DAY, sql_name), why, needed=False)
