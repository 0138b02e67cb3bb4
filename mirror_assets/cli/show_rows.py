"""Commands that read rows of the tables with Spark: reconcile, feed and preview."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, note_errors, show, show_records
from mirror_assets.cli.progress import showing_progress
from mirror_assets.composition import compose, spark_settings_of
from mirror_assets.config.load import load_config
from mirror_assets.errors import ErrorRecord, MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.preview import landing_rows, show_changes
from mirror_assets.pipeline.project import source_log
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.pipeline.spark_sessions import session_factory
from mirror_assets.source.ranges import Range
from mirror_assets.telemetry.progress import end_work, expect
from mirror_assets.verify.reconciliation import ReconcileState, Reconciliation, shown

_DIFFERENT = (ReconcileState.DIFFERENT, ReconcileState.MISSING, ReconcileState.STOPPED)


def reconcile(path: Path | None, names: Sequence[str], *, as_json: bool) -> Exit:
    """Compare mirror and source; fails for a difference and a missing mirror, but not while files wait."""
    project = compose(load_config(path), report=note)
    mirror = project.mirror()
    results, errors = list[Reconciliation](), list[ErrorRecord]()
    tables = project.tables(names)
    with showing_progress("scan", as_json=as_json):
        for table in tables:
            expect(str(table.name), [1, 1])
        for table in tables:
            note(f"{table.name}: comparing the mirror with its source")
            try:
                results.append(reconcile_table(table, mirror, partial(_note_phase, table.name)))
            except MirrorError as error:
                errors.append(error.record(str(table.name)))
            end_work(str(table.name))
    columns = ("table", "version", "source rows", "mirror rows", "result", "columns that differ")
    rows = [
        (x.table, None if x.version < 0 else x.version, x.source_rows, x.mirror_rows, x.summary, ", ".join(x.columns))
        for x in results
    ]
    show("Reconciled", columns, rows, results, errors, as_json=as_json)
    for result in () if as_json else results:
        ignored = ", ".join(result.ignored_columns)
        only = f"not compared, because only the mirror has them: {ignored}" if ignored else ""
        for text in filter(None, (result.reason, only, *map(shown, result.samples))):
            note(f"{result.table}: {text}")
    code = note_errors(errors)
    return Exit.FAILED if any(result.state in _DIFFERENT for result in results) else code


def _note_phase(table: TableName, phase: str) -> None:
    note(f"{table}: {phase}")


def feed(path: Path | None, name: str, commits: Range, limit: int, *, as_json: bool) -> Exit:
    """Show the changes of these commits, by default of the newest, ordered by version."""
    config = load_config(path)
    table = config.table(name)
    session = spark_settings_of(config).open
    log = source_log(config, table, session)
    pieces = tuple(show_changes(table, log, session_factory(log, partial(session, None)), commits, limit + 1))
    rows = [row for piece in pieces for row in piece.rows][:limit]
    _show_rows("Change feed", rows, as_json=as_json)
    if sum(len(piece.rows) for piece in pieces) > limit:
        note(f"{name}: there are more rows than {limit}; --limit shows more")
    return Exit.FINE


def preview(path: Path | None, name: str, limit: int, *, as_json: bool) -> Exit:
    """Show the first rows of the newest version as they would land."""
    project = compose(load_config(path), report=note)
    rows = landing_rows(project.tables([name])[0], limit)
    _show_rows("Rows as they would land", rows, as_json=as_json)
    return Exit.FINE


def _show_rows(title: str, rows: Sequence[str], *, as_json: bool) -> None:
    """Print rows, which are JSON objects, as a table for each set of columns; no number is rounded."""
    if as_json:
        print(f"[{','.join(rows)}]")  # noqa: T201 the output
        return
    records: list[dict[str, object]] = [json.loads(row, parse_float=str, parse_int=str) for row in rows]
    for columns, alike in groupby(records, tuple[str, ...]):
        show_records(title, columns, [[_text(record[name]) for name in columns] for record in alike])
    if not records:
        show_records(title, (), ())


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
