"""Runs `fabric accept`: asks, runs the exercises on the mirrored database, prints and writes their report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import click

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import is_confirmed, note, show, show_json, show_records, show_text
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.features.fabric.accept.acceptance import PROBLEMS, Acceptance, ExerciseAnswer
from mirror_assets.features.fabric.accept.bench import FabricService, Patience
from mirror_assets.features.fabric.accept.exercises import EXERCISES, Exercise
from mirror_assets.features.fabric.accept.report import AcceptReport
from mirror_assets.features.fabric.accept.scratch import PREFIX, leftovers, remove
from mirror_assets.features.fabric.errors import NOT_RUNNING
from mirror_assets.features.fabric.fabric_mirror import open_database
from mirror_assets.lakes.access import access_to
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.monitoring import DatabaseState
from mirror_assets.redaction import hide

_PAUSE_SECONDS = 5.0
_WORD = "accept"


def list_exercises(*, as_json: bool) -> Exit:
    """Print the exercises; needs no configuration."""
    if as_json:
        show_json([{"name": one.name, "expected": one.expected} for one in EXERCISES])
    else:
        show_records("Exercises", ("exercise", "expected"), [(one.name, one.expected) for one in EXERCISES])
    return Exit.FINE


def clean(path: Path | None, *, yes: bool) -> Exit:
    """Delete what former runs have left, unless the user refuses."""
    return _removed(_service(load_config(path)), "", yes=yes) or Exit.FINE


def accept(
    path: Path | None, only: Sequence[str], wait: float, report: Path | None, *, yes: bool, keep: bool, as_json: bool
) -> Exit:
    """Run the exercises, unless the user refuses; fail if Fabric does something else than expected.

    Raises MISTAKES without a mirrored database in the configuration, and NOT_RUNNING.
    """
    exercises = [one for one in EXERCISES if not only or one.name in only]
    if report is not None:
        _require_folder(report)
    service = _service(load_config(path))
    state = service.client.status(service.database).state
    if state is not DatabaseState.RUNNING:
        raise NOT_RUNNING(item=str(service.database), state=state.value)
    code = _removed(service, _plan(exercises, keep=keep), yes=yes)
    if code is not None:
        return code
    began, patience = datetime.now(timezone.utc), Patience(wait, min(_PAUSE_SECONDS, wait / 10))
    answers = Acceptance(service, patience, _note_answer, keep).run(exercises)
    if report is not None:
        done = AcceptReport(began, datetime.now(timezone.utc), wait, answers).shareable(_names(service))
        note(f"report: {', '.join(map(str, done.write(report)))}")
    rows = [(one.name, one.verdict.value, one.seconds, one.seen, one.follows) for one in answers]
    show("Exercises", ("exercise", "verdict", "seconds", "seen", "what follows"), rows, answers, as_json=as_json)
    statements = [statement for one in answers for statement in one.statements]
    if keep and statements and not as_json:
        show_text("Try at the SQL endpoint; then run `mirror-assets fabric accept --clean`", "\n".join(statements))
    if patience.interrupted.is_set():
        raise click.Abort
    return Exit.FAILED if any(one.verdict in PROBLEMS for one in answers) else Exit.FINE


def _require_folder(report: Path) -> None:
    """Make the folder before the run, which would be in vain without it. Raises click.BadParameter."""
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(str(error), param_hint="--report") from error


def _plan(exercises: Sequence[Exercise], *, keep: bool) -> str:
    end = "they are kept" if keep else "they are deleted at the end"
    names = ", ".join(one.name for one in exercises)
    stop = "; the database is stopped and started if it has no other tables" * any(one.is_alone for one in exercises)
    return f"tables whose names begin with {PREFIX} land there, and {end}, for {names}{stop}"


def _removed(service: FabricService, plan: str, *, yes: bool) -> Exit | None:
    """Ask whether to do what is planned; remove what former runs have left, or return the exit code."""
    left = leftovers(service.store)
    found = f"these tables of former runs, or of one that is active now, are deleted: {', '.join(map(str, left))}"
    consequence = "; ".join(filter(None, [found if left else "", plan]))
    if not consequence:
        note("no table of a former run is left")
        return None
    if not yes and not is_confirmed(_WORD, f"in {service.store.root}, {consequence}", f"`{_WORD}`"):
        return Exit.FAILED
    for name in left:
        remove(service.store, name)
        note(f"deleted {name}")
    return None


def _note_answer(answer: ExerciseAnswer) -> None:
    note(f"{answer.name}: {answer.verdict.value} after {answer.seconds:.0f} s: {answer.seen}")


def _names(service: FabricService) -> list[str]:
    """Return the names that a report must not have; hide the environment's values about the identity."""
    for name, value in os.environ.items():
        if name.startswith("AZURE_"):
            hide(name, value)
    return [urlsplit(service.store.root).hostname or "", *(one.name for one in service.client.databases())]


def _service(config: Config) -> FabricService:
    (client, tables), place = open_database(config), config.mirror_place
    assert place is not None  # noqa: S101 `open_database` raises without it
    stores = (StoreConfig(root=place.tables, credential=place.credential),)
    return FabricService(
        config.zone.open(),
        client,
        UUID(tables.item),
        place.tables,
        place.default_schema,
        lambda uri: access_to(uri, stores),
    )
