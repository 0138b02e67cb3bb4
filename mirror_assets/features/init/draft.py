"""The draft of mirror.yaml and its SQL file: surveys the tables, and proposes and proves their keys."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError
from mirror_assets.features.init.entries import TableEntry, table_entry
from mirror_assets.features.init.errors import FILE_EXISTS, FILE_UNWRITABLE
from mirror_assets.features.init.propose_keys import declared_key, key_candidates, likely_key
from mirror_assets.features.init.survey import Survey, Unreadable, survey_lake
from mirror_assets.features.init.surveyed_lake import Lake
from mirror_assets.features.init.write_files import config_text, sql_text
from mirror_assets.pipeline.spark_sessions import Session, session_factory

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
    def is_ready(self) -> bool:
        """Whether at least one table can be mirrored now; otherwise the file can't be loaded yet."""
        return any(entry.missing is None for entry in self.entries)

    def write(self) -> None:
        """Write both files, and replace existing ones.

        Raises file_unwritable, and ConfigInvalid if mirror.yaml could not be loaded, such as for a lake in the folder
        of the mirror; then neither file is written.
        """
        text = config_text(self.lake, self.entries, self.unreadable, self.file, self.sql)
        if self.is_ready:
            parse_config(text.encode(), self.file, {})
        for file, content in ((self.file, text), (self.sql, sql_text(self.entries))):
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                beside = file.with_name(f"{file.name}.new")
                beside.write_text(content, encoding="utf-8")
                beside.replace(file)
            except OSError as error:
                raise FILE_UNWRITABLE(file=file, why=error.strerror or str(error)) from error


def require_new(*files: Path) -> None:
    """Raise file_exists for the first file that exists."""
    for file in files:
        if file.exists():
            raise FILE_EXISTS(file=file)


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
    declared = declared_key(survey)
    if declared or session is None or survey.state.rows == 0:
        return table_entry(survey, declared or likely_key(survey), "no column is a key by its name and statistics")
    from mirror_assets.features.init.prove_keys import prove_key

    try:
        # A session holds the credentials of one table at a time.
        spark = session_factory(survey.log, partial(session, threading.current_thread().name))()
        return table_entry(survey, prove_key(spark, survey.state, survey.log, key_candidates(survey)))
    except MirrorError as error:
        return table_entry(survey, None, error.what.rstrip("."))
