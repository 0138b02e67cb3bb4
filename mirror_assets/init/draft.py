"""The files to be written: surveys the tables, looks for their keys, and puts both into text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mirror_assets.composition import Session, able_to_read
from mirror_assets.config import Config
from mirror_assets.config.load import parse_config
from mirror_assets.errors import MirrorError
from mirror_assets.init.entries import TableEntry, Unreadable, table_entry
from mirror_assets.init.errors import file_exists, file_unwritable
from mirror_assets.init.lake import Lake
from mirror_assets.init.propose_keys import KeyProposal, assumed_key, declared_key, key_candidates
from mirror_assets.init.survey import Survey, SurveyedTable, config_of, survey_lake
from mirror_assets.init.write_config import config_text
from mirror_assets.init.write_sql import sql_text

# Tables that Spark reads at the same time.
_AT_ONCE = 4
_BY_NAME = "no column is a key by its name and statistics"


@dataclass(frozen=True)
class Draft:
    """The file and its SQL file, with what they say. `surveys` are those of the entries, in their order."""

    lake: Lake
    file: Path
    sql: Path
    entries: tuple[TableEntry, ...]
    surveys: tuple[Survey, ...]
    unreadable: tuple[Unreadable, ...]

    @property
    def config_text(self) -> str:
        """The text of mirror.yaml."""
        return config_text(self.lake, self.entries, self.unreadable, self.file, self.sql)

    @property
    def sql_text(self) -> str:
        """The text of the SQL file."""
        return sql_text(self.entries)

    @property
    def is_ready(self) -> bool:
        """Whether at least one table can be mirrored as it is: else the file can't be loaded yet."""
        return any(entry.missing is None for entry in self.entries)

    def write(self) -> None:
        """Write both files; what was there is replaced.

        Raises ConfigInvalid where the first could not be loaded, such as that of a lake in the folder of the mirror,
        and file_unwritable; then the first is not written.
        """
        if self.is_ready:
            parse_config(self.config_text.encode(), self.file, {})
        for file, text in ((self.file, self.config_text), (self.sql, self.sql_text)):
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_name(f"{file.name}.new")
                beside.write_text(text, encoding="utf-8")
                beside.replace(file)
            except OSError as error:
                raise file_unwritable(file, error.strerror or str(error)) from error


def require_new(*files: Path) -> None:
    """Raise file_exists for the first file that is there."""
    for file in files:
        if file.exists():
            raise file_exists(file)


def make_draft(lake: Lake, file: Path, sql: Path, spark: Callable[[Config], Session] | None) -> Draft:
    """Survey the lake and look for keys; `spark` opens the session that proves them, None to do without.

    Raises what opening the session raises; what is wrong with a table only keeps that table out.
    """
    found = survey_lake(lake, file)
    readable = [(table, table.survey) for table in found if table.survey is not None]
    entries = _entries(lake, file, readable, spark)
    unreadable = tuple(Unreadable(table.table.path, table.error) for table in found if table.error is not None)
    return Draft(lake, file, sql, entries, tuple(survey for _, survey in readable), unreadable)


_Readable = tuple[SurveyedTable, Survey]


def _entries(
    lake: Lake, file: Path, readable: Sequence[_Readable], spark: Callable[[Config], Session] | None
) -> tuple[TableEntry, ...]:
    if spark is None or not readable:
        return tuple(table_entry(table, survey, _unproven(table, survey), _BY_NAME) for table, survey in readable)
    session = spark(config_of(lake, file, [(table.name, table.table) for table, _ in readable]))
    session("init")  # what keeps Spark from starting is no table's fault
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(partial(_proven_entry, session), readable))


def _unproven(table: SurveyedTable, survey: Survey) -> KeyProposal | None:
    return declared_key(table.table.declared_keys) or assumed_key(survey, table.name.table)


def _proven_entry(session: Session, readable: _Readable) -> TableEntry:
    from mirror_assets.init.prove_keys import prove_key

    table, survey = readable
    declared = declared_key(table.table.declared_keys)
    if declared or survey.state.rows == 0:
        return table_entry(table, survey, _unproven(table, survey), _BY_NAME)
    candidates = key_candidates(survey, table.name.table)
    try:
        # A session reads with the keys of one table at a time.
        spark = able_to_read(survey.log, partial(session, threading.current_thread().name))()
        return table_entry(table, survey, prove_key(spark, survey.state, survey.log.uri, candidates), None)
    except MirrorError as error:
        return table_entry(table, survey, None, error.what.rstrip("."))
