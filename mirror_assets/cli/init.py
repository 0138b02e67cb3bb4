"""The command `init`: writes a first mirror.yaml for a lake, and the statements that its tables miss."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import CatalogOptions
from mirror_assets.cli.output import note, show
from mirror_assets.composition import Session, SparkSettings
from mirror_assets.config import Config
from mirror_assets.config.table_settings import StorePath
from mirror_assets.init.draft import Draft, make_draft, require_new
from mirror_assets.init.entries import TableEntry, counted
from mirror_assets.init.lake import CatalogRequest, Lake, open_catalog, open_lake


@dataclass(frozen=True)
class InitRequest:
    """What was typed: the lake, by the settings of its store or its catalog, and where the files go."""

    place: str
    store: Mapping[str, object]
    catalog: CatalogOptions | None
    depth: int
    file: Path
    sql: Path | None
    force: bool
    with_spark: bool


@dataclass(frozen=True)
class TableLine:
    """A table that was found. `missing`: why it is not mirrored yet; `proof`: how sure its keys are."""

    table: str
    path: str
    rows: int | None = None
    feed: bool = False
    row_tracking: bool = False
    changes: str | None = None
    keys: tuple[str, ...] = ()
    proof: str | None = None
    missing: str | None = None


def init(request: InitRequest, *, as_json: bool) -> Exit:
    """Write both files; it fails when no table can be mirrored as it is."""
    began = time.monotonic()
    file = request.file
    sql = request.sql or file.with_suffix(".sql")
    if not request.force:
        require_new(file, sql)
    lake = _open(request)
    where = f"below {lake.root}" if request.catalog is None else f"in the catalog {request.catalog.catalog}"
    note(f"{counted(len(lake.tables), 'table')} {where}")
    draft = make_draft(lake, file, sql, _proving_session if request.with_spark else None)
    draft.write()
    _show(draft, time.monotonic() - began, as_json=as_json)
    for step in _next_steps(draft):
        note(step)
    return Exit.FINE if draft.is_ready else Exit.FAILED


def _open(request: InitRequest) -> Lake:
    if request.catalog is None:
        return open_lake(request.place, request.store, request.depth, request.file.absolute().parent)
    typed = request.catalog
    named = (typed.catalog, typed.schema or "*", typed.token_variable)
    catalog = CatalogRequest(request.place, *named, typed.stores, request.store, typed.settings_of_spark)
    return open_catalog(catalog, request.file, _session)


def _proving_session(config: Config) -> Session:
    note("Looking for keys with Spark; --no-spark does without")
    return _session(config)


def _session(config: Config) -> Session:
    return SparkSettings.of(config).open


def _show(draft: Draft, seconds: float, *, as_json: bool) -> None:
    lines = [_line(entry) for entry in draft.entries]
    lines += [TableLine("", table.path, missing=table.why) for table in draft.unreadable]
    rows = [
        (
            x.table,
            x.path,
            None if x.rows is None else f"{x.rows:,}",
            _on(feed=x.feed, row_tracking=x.row_tracking),
            x.changes,
            ", ".join(x.keys),
            x.proof,
            x.missing or "ready",
        )
        for x in lines
    ]
    columns = ("table", "path", "rows", "on", "changes", "keys", "proof", "result")
    show(f"Found in {seconds:.0f} s", columns, rows, lines, as_json=as_json)


def _line(entry: TableEntry) -> TableLine:
    return TableLine(
        table=str(entry.name),
        path=entry.source.path if isinstance(entry.source, StorePath) else entry.source.table,
        rows=entry.rows,
        feed=entry.feed,
        row_tracking=entry.row_tracking,
        changes=entry.changes.value,
        keys=entry.keys.columns if entry.keys else (),
        proof=entry.keys.proof.value if entry.keys else None,
        missing=entry.missing,
    )


def _on(*, feed: bool, row_tracking: bool) -> str:
    return ", ".join(name for name, is_on in (("feed", feed), ("row tracking", row_tracking)) if is_on)


def _next_steps(draft: Draft) -> list[str]:
    ready = sum(entry.missing is None for entry in draft.entries)
    needed = sum(statement.needed for entry in draft.entries for statement in entry.statements)
    wrote = (
        f"{draft.file} with {counted(ready, 'table')} to mirror, and {draft.sql} with {counted(needed, 'statement')}"
    )
    steps = [f"Wrote {wrote}"]
    if ready:
        steps.append(f"Next: read {draft.file}, then run `mirror-assets run --config {draft.file}`")
    if needed:
        steps.append(f"Then: read {draft.sql} and run it, and remove the # before its tables in {draft.file}")
    return steps
