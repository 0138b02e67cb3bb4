"""Commands on the landing zone itself: doctor and drop. No Dagster job does either."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show, show_json
from mirror_assets.composition import Project, open_watched_zone
from mirror_assets.config import load_config
from mirror_assets.landing.drop import is_dropped
from mirror_assets.landing.names import SCRATCH, TableName
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.drop import drop_table, require_table
from mirror_assets.pipeline.rebuild import mirror_wait
from mirror_assets.storage.doctor import Diagnosis, examine


@dataclass(frozen=True)
class DropLine:
    """A drop; `dropped` is false where there was nothing to drop."""

    table: str
    dropped: bool


def doctor(path: Path | None, *, as_json: bool) -> Exit:
    """Probe the real landing zone, in a scratch folder, for what publishing needs; it fails when a probe does."""
    store, recorder = open_watched_zone(load_config(path).landing_zone)
    note(f"Probing {store.root}")
    found = list(examine(store, SCRATCH, recorder.heard))
    if recorder.versions:
        found.append(
            Diagnosis("which x-ms-version does it answer with?", passed=True, saw=", ".join(recorder.versions))
        )
    rows = [("pass" if one.passed else "FAIL", one.question, one.saw) for one in found]
    show("Landing zone", ("", "question", "answers"), rows, found, as_json=as_json)
    return Exit.FINE if all(one.passed for one in found) else Exit.FAILED


def drop(path: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Drop the table, or finish an interrupted drop. Asks first, unless `yes`."""
    project, table = Project.of(load_config(path)), TableName.parse(name)
    config, store = project.config, project.store
    require_table(config, store, table)
    there = not drive(is_dropped(table), store)
    if there and not yes:
        refused = _ask(table, store.root)
        if refused is not None:
            return refused
    drop_table(store, table, mirror_wait(project.mirror(), table), note)
    if as_json:
        show_json([DropLine(str(table), there)])
    else:
        note(f"{table}: dropped" if there else f"{table}: there is nothing to drop")
    if table in config.names:
        note(f"{table} is still in {config.file}: the next run begins it anew, with a snapshot")
    return Exit.FINE


def _ask(table: TableName, zone: str) -> Exit | None:
    """Return None if the user typed the table's name, or else the exit code."""
    what = f"{table}: its landing files and staged parts are deleted from {zone}, and then the mirror drops the table"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note(f"error: {what}. Next: there is no terminal to ask at; add --yes to confirm.")
        return Exit.BAD_SETTING
    note(f"{what}.\nType the table's name to go on:")
    if sys.stdin.readline().strip() == str(table):
        return None
    note("nothing was dropped")
    return Exit.FAILED
