"""Runs `fabric accept`: asks, runs the exercises on the mirrored database, prints and writes their report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID

import click

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, refused, show, show_text
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.features.fabric.accept.acceptance import EXERCISES, Acceptance
from mirror_assets.features.fabric.accept.bench import Patience, Service
from mirror_assets.features.fabric.accept.exercise import Answer, Exercise, is_as_expected
from mirror_assets.features.fabric.accept.report import Report
from mirror_assets.features.fabric.accept.scratch import PREFIX, leftovers, remove
from mirror_assets.features.fabric.commands.fabric_run import _database as open_database
from mirror_assets.features.fabric.errors import NOT_RUNNING
from mirror_assets.features.fabric.fabric_settings import FabricMirrorSettings
from mirror_assets.lakes.access import access_to
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.monitoring import DatabaseState
from mirror_assets.redaction import hide
from mirror_assets.zones import Store

_PAUSE_SECONDS = 5.0
_CONFIRMATION = "accept"


@dataclass(frozen=True)
class ExerciseLine:
    """An exercise in the list of all."""

    exercise: str
    question: str
    expected: str


@dataclass(frozen=True)
class AcceptOptions:
    """The options of `fabric accept`; `only` are names of exercises, all of them if it is empty."""

    only: tuple[str, ...] = ()
    wait: float = 600.0
    report: Path | None = None
    yes: bool = False
    keep: bool = False
    clean: bool = False

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """The exercises to run; none to clean only."""
        return () if self.clean else tuple(one for one in EXERCISES if not self.only or one.name in self.only)


def show_exercises(*, as_json: bool) -> Exit:
    """Print the exercises; needs no configuration."""
    lines = [ExerciseLine(one.name, one.question, one.expected) for one in EXERCISES]
    rows = [(line.exercise, line.question, line.expected) for line in lines]
    show("Exercises", ("exercise", "question", "expected"), rows, lines, as_json=as_json)
    return Exit.FINE


def accept(path: Path | None, options: AcceptOptions, *, as_json: bool) -> Exit:
    """Run the exercises, unless the user refuses; fail if Fabric does something else than expected.

    Raises MISTAKES without a mirrored database in the configuration, and NOT_RUNNING.
    """
    config = load_config(path)
    service = _service(config)
    state = service.client.status(service.database).state
    if state is not DatabaseState.RUNNING and not options.clean:
        raise NOT_RUNNING(item=str(service.database), state=state.value)
    left = leftovers(service.store)
    if options.clean and not left:
        note("no scratch table is left")
        return Exit.FINE
    consequence = _consequence(service.store, options, [str(name) for name in left])
    code = None if options.yes else refused(_CONFIRMATION, consequence, f"`{_CONFIRMATION}`")
    if code is not None:
        return code
    for name in left:
        remove(service.store, name)
        note(f"removed {name}")
    return Exit.FINE if options.clean else _run(service, options, as_json=as_json)


def _run(service: Service, options: AcceptOptions, *, as_json: bool) -> Exit:
    private = [one.name for one in service.client.databases() if one.id == service.database]
    patience = Patience(options.wait, min(_PAUSE_SECONDS, options.wait / 10))
    began = datetime.now(timezone.utc)
    answers = Acceptance(service, patience, _note_answer, keep=options.keep).run(options.exercises)
    for name, value in os.environ.items():
        if name.startswith("AZURE_"):
            hide(name, value)
    report = Report(began, datetime.now(timezone.utc), options.wait, answers, private)
    if options.report:
        note(f"report: {', '.join(map(str, report.write(options.report)))}")
    rows = [(one.name, one.verdict.value, one.seconds, one.seen, one.follows) for one in answers]
    show("Exercises", ("exercise", "verdict", "seconds", "seen", "what follows"), rows, answers, as_json=as_json)
    statements = [statement for one in answers for statement in one.statements]
    if options.keep and statements and not as_json:
        show_text(
            "Try these at the SQL endpoint; then run `mirror-assets fabric accept --clean`:", "\n".join(statements)
        )
    if patience.stopped.is_set():
        raise click.Abort
    return Exit.FINE if is_as_expected(answers) else Exit.FAILED


def _note_answer(answer: Answer) -> None:
    note(f"{answer.name}: {answer.verdict.value} after {answer.seconds:.0f} s: {answer.seen}")


def _consequence(store: Store, options: AcceptOptions, left: list[str]) -> str:
    """Return what the command is about to do, for the question."""
    parts = []
    if left:
        parts.append(f"deletes what is left of former runs, or of one that is active now: {', '.join(left)}")
    if options.exercises:
        end = "keeps them" if options.keep else "deletes them"
        names = ", ".join(one.name for one in options.exercises)
        parts.append(f"lands tables whose names begin with {PREFIX}, waits for Fabric, and {end} ({names})")
    if any(one.is_alone for one in options.exercises):
        parts.append("stops and starts the database if it has no other tables")
    return f"`accept` works in {store.root}: it {'; it '.join(parts)}"


def _service(config: Config) -> Service:
    client, tables = open_database(config)
    fabric, place = FabricMirrorSettings.of(config.mirror).fabric, config.mirror_place
    assert fabric is not None and place is not None  # noqa: S101, PT018 `open_database` requires both
    stores = (StoreConfig(root=place.tables, credential=place.credential),)
    return Service(
        store=config.zone.open(),
        client=client,
        database=UUID(tables.item),
        tables=place.tables,
        default_schema=fabric.default_schema,
        access=lambda uri: access_to(uri, stores),
    )
