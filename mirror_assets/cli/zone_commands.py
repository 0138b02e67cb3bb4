"""Runs `drop`, without a Dagster job."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.cli.confirm import refused
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import is_dropped
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.rebuild_table import drop_table, mirror_wait, require_table


def drop(path: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Drop the table, or finish an interrupted drop. Asks first, unless `yes`."""
    project, table = compose(load_config(path)), TableName.parse(name)
    config, store = project.config, project.store
    require_table(config, store, table)
    there = not drive(is_dropped(table), store)
    if there and not yes:
        what = f"{table}: its landing files and staged parts in {store.root} are deleted; the mirror drops the table"
        code = refused(table, what)
        if code is not None:
            return code
    drop_table(store, table, mirror_wait(project.mirror(), table), note)
    if as_json:
        show_json([{"table": str(table), "dropped": there}])
    else:
        note(f"{table}: dropped" if there else f"{table}: there is nothing to drop")
    if table in config.names:
        note(f"{table} is still in {config.file}: the next run loads it again, with a snapshot")
    return Exit.FINE
