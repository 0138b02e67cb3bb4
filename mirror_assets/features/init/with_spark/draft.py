"""The draft of mirror.yaml and its SQL file: an entry for each table, and the text of both files.

The text is written by hand for the comments; PyYAML writes the values.
"""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import yaml

from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.source_fit import source_problems
from mirror_assets.config.table_settings import RetentionLimits, StorePath
from mirror_assets.errors import MirrorError
from mirror_assets.features.init.errors import FILE_UNWRITABLE
from mirror_assets.features.init.with_spark.keys import KeyProposal, Proof, key_candidates, likely_key, prove_key
from mirror_assets.features.init.with_spark.survey import Lake, Survey, Unreadable, survey_lake
from mirror_assets.lakes.catalogs import CatalogTable
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.spark_sessions import Session, session_factory
from mirror_assets.settings import is_uri
from mirror_assets.source.commits import source_columns
from mirror_assets.source.table_properties import FEED_BY_DEFAULT, ROW_TRACKING_COST, Retention, feed_consequence
from mirror_assets.spark_names import table_at

# Tables that Spark reads at the same time.
_AT_ONCE = 4


@dataclass(frozen=True)
class Draft:
    """The tables of the new mirror.yaml, and the two files to write."""

    lake: Lake
    file: Path
    sql: Path
    entries: tuple[TableEntry, ...]
    unreadable: tuple[Unreadable, ...]

    @property
    def ready(self) -> int:
        """The number of tables that can be mirrored now; without any, the file can't be loaded yet."""
        return sum(entry.missing is None for entry in self.entries)

    def write(self) -> None:
        """Write both files, and replace existing ones.

        Raises FILE_UNWRITABLE, and MISTAKES if mirror.yaml could not be loaded, such as for a lake in the folder
        of the mirror; then neither file is written.
        """
        text = config_text(self.lake, self.entries, self.unreadable, self.file, self.sql)
        if self.ready:
            parse_config(text.encode(), self.file, {})
        for file, content in ((self.file, text), (self.sql, sql_text(self.entries))):
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_name(f"{file.name}.new")
                beside.write_text(content, encoding="utf-8")
                beside.replace(file)
            except OSError as error:
                raise FILE_UNWRITABLE(file=file, why=error.strerror or str(error)) from error


def make_draft(lake: Lake, file: Path, sql: Path, spark: Callable[[Config], Session] | None) -> Draft:
    """Survey the lake and propose keys; `spark` opens the session that proves them, None: they aren't proven.

    Raises what opening the session raises. An error of one table only omits that table.
    """
    found = survey_lake(lake, file)
    surveys = [one for one in found if isinstance(one, Survey)]
    unreadable = tuple(one for one in found if isinstance(one, Unreadable))
    session = None
    if spark is not None and surveys:
        session = spark(lake.config(file, [(one.name, one.table) for one in surveys]))
        session("init")  # an error here concerns Spark, not a table
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        entries = tuple(pool.map(partial(_entry, session), surveys))
    return Draft(lake, file, sql, entries, unreadable)


def _entry(session: Session | None, survey: Survey) -> TableEntry:
    """Return the table's entry, with a key that Spark proves unless the catalog declares one or the table is empty."""
    if survey.table.declared_keys or session is None or survey.state.rows == 0:
        return table_entry(survey, likely_key(survey), "no column is a key by its name and statistics")
    try:
        # A session holds the credentials of one table at a time.
        spark = session_factory(survey.log, partial(session, threading.current_thread().name))()
        return table_entry(survey, prove_key(spark, survey.state, survey.log, key_candidates(survey)))
    except MirrorError as error:
        return table_entry(survey, None, error.what.rstrip("."))


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


_WIDTH = 110
_HEADER = """\
# Written by `mirror-assets init`. Paths are relative to this file.
landing_zone: {path: ./landing}
# For Fabric, instead: landing_zone: {onelake: {url: <the landing zone's URL, copied from the portal>}}
mirror: {path: ./mirror}
"""
_SQL_HEADER = f"""\
-- Written by `mirror-assets init`, and not run. Review it, then run it where the tables are written.
-- No statement changes a row. Each is one commit; enabling row tracking takes several.
-- To enable the change data feed for all new tables, set this in the Spark session or cluster that creates them:
--   {FEED_BY_DEFAULT} = true
"""
_NOTHING = "-- Nothing is missing.\n"


def config_text(
    lake: Lake, entries: Sequence[TableEntry], unreadable: Sequence[Unreadable], file: Path, sql: Path
) -> str:
    """Return the text of mirror.yaml. Tables with something missing are comments."""
    blocks = [_HEADER]
    if lake.spark_settings:
        blocks.append(f"spark:\n  settings: {flow(dict(lake.spark_settings))}\n")
    stores = {name: _store(store, file) for name, store in lake.stores.items()}
    catalogs = {name: catalog.model_dump(mode="json", exclude_defaults=True) for name, catalog in lake.catalogs.items()}
    for block, places in (("stores", stores), ("catalogs", catalogs)):
        if places:
            lines = [f"  {flow(name)}: {flow(place)}" for name, place in places.items()]
            blocks.append("\n".join([f"{block}:", *lines, ""]))
    ready = any(entry.missing is None for entry in entries)
    tables = ["\n".join(_table(entry, sql)) + "\n" for entry in entries]
    blocks.append("\n".join([f"tables:{'' if ready else ' {}'}", *tables]))
    if unreadable:
        lines = [line for table in unreadable for line in _comment(f"- {table.path}: {table.why}")]
        blocks.append("\n".join(["# Not mirrored, because they can't be read:", *lines, ""]))
    return "\n".join(blocks)


def _store(store: StoreConfig, file: Path) -> dict[str, object]:
    """Return the store's settings that differ from the defaults; its root is relative to the file if it is below."""
    settings = store.model_dump(mode="json", exclude_defaults=True)
    folder = file.absolute().parent
    if not is_uri(store.root) and Path(store.root).is_relative_to(folder):
        settings["root"] = f"./{Path(store.root).relative_to(folder).as_posix()}"
    return settings


def _table(entry: TableEntry, sql: Path) -> Iterator[str]:
    for note in entry.notes:
        yield from _comment(note, "  ")
    if entry.keys:
        keys = entry.keys
        yield from _comment(f"{', '.join(keys.columns)}: {keys.proof.value}: {keys.finding}", "  ")
    if entry.missing:
        yield from _comment(f"Not mirrored yet: {entry.missing}.", "  ")
        step = "Correct that"
        if any(statement.needed for statement in entry.statements):
            known = "If you know its key, set `keys` and `changes: feed`. Otherwise, run" if entry.feed else "Run"
            step = f"{known} its statement in {sql.name}"
        yield from _comment(f"{step}. Then remove the # at the beginning of each line:", "  ")
    off = "#" if entry.missing else ""
    yield f"{off}  {flow(str(entry.name))}:"
    yield f"{off}    source: {flow(asdict(entry.source))}"
    if entry.keys:
        yield f"{off}    keys: {flow(list(entry.keys.columns))}"
    if entry.columns is not None:
        yield f"{off}    columns: {flow(list(entry.columns))}"
    yield f"{off}    changes: {entry.changes.value}"


class _OneLine(yaml.SafeDumper):
    """Writes texts with line breaks and other unprintable characters in double quotes, where they are escaped."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_OneLine.add_representer(str, _text)


def flow(value: object) -> str:
    """Return the value as YAML in one line, with quotes if needed."""
    text: str = yaml.dump(
        value, Dumper=_OneLine, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _comment(text: str, indent: str = "") -> list[str]:
    """Return the text as lines of a comment; unprintable characters are escaped."""
    escaped = (one if one.isprintable() else one.encode("unicode_escape").decode() for one in " ".join(text.split()))
    return [f"{indent}# {line}" for line in _wrapped("".join(escaped))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def sql_text(entries: Sequence[TableEntry]) -> str:
    """Return the text of the SQL file. Statements that are advised but not needed are comments."""
    blocks = list[str]()
    for entry in entries:
        lines = [f"-- {' '.join(str(entry.name).split())}"]
        for statement in entry.statements:
            lines += [f"-- {line}" for line in _wrapped(" ".join(statement.why.split()))]
            if "\n" in statement.sql or "\r" in statement.sql:
                lines.append("-- The table's address has a line break: rename its folder.")
            else:
                lines.append(f"{statement.sql};" if statement.needed else f"-- Advised: {statement.sql};")
        if entry.statements:
            blocks.append("\n".join(lines) + "\n")
    return "\n".join([_SQL_HEADER, *(blocks or [_NOTHING])])
