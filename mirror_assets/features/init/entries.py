"""The entry of each table in mirror.yaml: its settings, the findings, and what is missing to mirror it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mirror_assets.config.setting_values import Changes
from mirror_assets.config.source_fit import source_problems
from mirror_assets.config.table_settings import RetentionLimits, StorePath
from mirror_assets.errors import MirrorError
from mirror_assets.features.init.propose_keys import KeyProposal, Proof
from mirror_assets.features.init.survey import Survey
from mirror_assets.lakes.catalogs import CatalogTable
from mirror_assets.landing.names import TableName
from mirror_assets.source.source_state import source_columns
from mirror_assets.source.table_properties import ROW_TRACKING_COST, Retention, feed_consequence
from mirror_assets.sql_names import table_at

_DAY = 86_400
_RETAINED_DAYS = 7
_APPEND_ONLY = "delta.appendOnly"
_COST_OF_FILES = (
    "Without a change data feed, `changes: files` reads every file that a commit rewrites, as it was and as it is. "
    "With the feed, only changed rows are read: to use it, run this, then set `changes: feed`."
)


@dataclass(frozen=True)
class Statement:
    """A SQL statement for a table, and its reason; one that is not `needed` only makes the mirror safer."""

    sql: str
    why: str
    needed: bool = True


@dataclass(frozen=True)
class TableEntry:
    """A table of the file: its settings and findings. `rows` None: not counted.

    `missing` is the reason why it is written as a comment; None for a table that can be mirrored now.
    """

    name: TableName
    source: StorePath | CatalogTable
    changes: Changes
    keys: KeyProposal | None = None
    columns: tuple[str, ...] | None = None
    rows: int | None = None
    feed: bool = False
    row_tracking: bool = False
    notes: tuple[str, ...] = ()
    missing: str | None = None
    statements: tuple[Statement, ...] = ()


def table_entry(survey: Survey, keys: KeyProposal | None, doubt: str = "no key was found") -> TableEntry:
    """Return the table's entry; `doubt` is the reason why it has no `keys`."""
    state, metadata = survey.state, survey.state.metadata
    changes, off = Changes.FEED, None if state.feed_enabled else "the change data feed is off"
    if not (state.feed_enabled and keys):
        if metadata.row_tracking:
            changes, off = Changes.ROW_TRACKING, None
        elif metadata.configuration.get(_APPEND_ONLY, "false").lower() == "true":
            changes, off = Changes.APPEND_ONLY, None
        elif not keys:
            changes, off = Changes.ROW_TRACKING, f"{doubt}; without keys row tracking is needed, which is off"
        else:
            changes, off = Changes.FILES, None
    shown = keys if keys and (changes.needs_keys or keys.proof is not Proof.NOT_PROVEN) else None
    columns = tuple(field.name for field in survey.fields) if survey.unfit else None
    settings = survey.settings.model_copy(
        update={"changes": changes, "keys": shown.columns if shown else (), "columns": columns}
    )
    problems = [problem.message for problem in source_problems(settings, source_columns(state))]
    problems += [
        f"mirror.yaml takes the `${{` in the name of the column {column!r} for an environment variable"
        for column in columns or ()
        if "${" in column
    ]
    return TableEntry(
        name=survey.name,
        source=survey.table.source,
        changes=changes,
        keys=shown,
        columns=columns,
        rows=state.rows,
        feed=state.feed_enabled,
        row_tracking=metadata.row_tracking,
        notes=tuple(_notes(survey)),
        missing="; ".join(filter(None, (off, *problems))) or None,
        statements=tuple(_statements(survey, changes if off or changes is Changes.FILES else None)),
    )


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural if needed."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _notes(survey: Survey) -> Iterator[str]:
    state = survey.state
    rows = "rows not counted" if state.rows is None else counted(state.rows, "row")
    names = {"the change data feed": state.feed_enabled, "row tracking": state.metadata.row_tracking}
    on = [name for name, is_on in names.items() if is_on]
    enabled = f"{' and '.join(on)} {'is' if len(on) == 1 else 'are'} on"
    if not on:
        enabled = "neither the change data feed nor row tracking is on"
    yield f"Version {state.version}, {rows}, {counted(state.files, 'file')}; {enabled}."
    for field in survey.unfit:
        yield f"Without `{field.name}`: a landing file can't hold its type, {field.type}."
    for field in state.schema.fields:
        if field.kind.direct_lake:
            yield f"Direct Lake can't load `{field.name}` of the source: it {field.kind.direct_lake}."


def _statements(survey: Survey, missing: Changes | None) -> Iterator[Statement]:
    """Yield the statement that `missing` needs, or for `files`, one that saves its cost; and advice on retention."""
    state, sql_name = survey.state, survey.table.sql_name
    alter = f"ALTER TABLE {sql_name or table_at(state.uri)} SET TBLPROPERTIES"
    if missing is Changes.FEED:
        why = f"The change data feed is off. {feed_consequence(state.protocol)}"
        yield Statement(f"{alter} (delta.enableChangeDataFeed = true)", why)
    if missing is Changes.FILES:
        why = f"{_COST_OF_FILES} {feed_consequence(state.protocol)}"
        yield Statement(f"{alter} (delta.enableChangeDataFeed = true)", why, needed=False)
    if missing is Changes.ROW_TRACKING:
        why = f"No key was found; with row tracking none is needed. {ROW_TRACKING_COST}"
        yield Statement(f"{alter} (delta.enableRowTracking = true)", why)
    try:
        retention = Retention.of(state.uri.replace("`", "``"), state.metadata)
    except MirrorError:
        return
    if retention.first.seconds < (RetentionLimits().warn_seconds or 0):
        days = retention.first.seconds / _DAY
        why = f"Commits can be read for only {days:.1f} days ({retention.first.name}): a mirror that stops loses them."
        yield Statement(retention.keeping(_RETAINED_DAYS * _DAY, sql_name), why, needed=False)
