"""Runs `init`: writes a first mirror.yaml for a lake, and the SQL statements that its tables need."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show
from mirror_assets.composition import spark_settings_of
from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import StorePath
from mirror_assets.features.init.draft import Draft, make_draft, require_new
from mirror_assets.features.init.entries import counted
from mirror_assets.features.init.surveyed_lake import CatalogRequest, open_catalog, open_lake
from mirror_assets.pipeline.spark_sessions import Session


@dataclass(frozen=True)
class TableLine:
    """A table of the lake. `missing`: why it is not mirrored yet; `proof`: how certain its keys are."""

    table: str
    path: str
    rows: int | None = None
    feed: bool = False
    row_tracking: bool = False
    changes: str | None = None
    keys: tuple[str, ...] = ()
    proof: str | None = None
    missing: str | None = None


def init(
    place: str,
    store: Mapping[str, object],
    depth: int,
    catalog: CatalogRequest | None,
    file: Path,
    sql: Path | None,
    *,
    force: bool,
    with_spark: bool,
    as_json: bool,
) -> Exit:
    """Survey a folder or a store with these settings, or a catalog, and write both files.

    Fails if no table can be mirrored yet.
    """
    began = time.monotonic()
    sql = sql or file.with_suffix(".sql")
    if not force:
        require_new(file, sql)
    if catalog is None:
        lake = open_lake(place, store, depth, file.absolute().parent)
        where = f"below {lake.root}"
    else:
        lake = open_catalog(catalog, file, _session)
        where = f"in the catalog {catalog.catalog}"
    note(f"{counted(len(lake.tables), 'table')} {where}")
    if with_spark:
        note("Proving keys with Spark; --no-spark skips this")
    draft = make_draft(lake, file, sql, _session if with_spark else None)
    draft.write()
    _show(draft, f"Found in {time.monotonic() - began:.0f} s", as_json=as_json)
    ready = sum(entry.missing is None for entry in draft.entries)
    needed = sum(statement.needed for entry in draft.entries for statement in entry.statements)
    note(f"Wrote {file} with {counted(ready, 'table')} to mirror, and {sql} with {counted(needed, 'statement')}")
    if ready:
        note(f"Next: read {file}, then run `mirror-assets run --config {file}`")
    if needed:
        note(f"Then: read {sql} and run it, and remove the # before its tables in {file}")
    return Exit.FINE if draft.is_ready else Exit.FAILED


def _session(config: Config) -> Session:
    return spark_settings_of(config).open


def _show(draft: Draft, title: str, *, as_json: bool) -> None:
    lines = [
        TableLine(
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
        for entry in draft.entries
    ]
    lines += [TableLine("", table.path, missing=table.why) for table in draft.unreadable]
    rows = [
        (
            x.table,
            x.path,
            None if x.rows is None else f"{x.rows:,}",
            ", ".join(name for name, is_on in (("feed", x.feed), ("row tracking", x.row_tracking)) if is_on),
            x.changes,
            ", ".join(x.keys),
            x.proof,
            x.missing or "ready",
        )
        for x in lines
    ]
    columns = ("table", "path", "rows", "on", "changes", "keys", "proof", "result")
    show(title, columns, rows, lines, as_json=as_json)
