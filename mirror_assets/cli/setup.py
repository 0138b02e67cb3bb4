"""Runs `doctor`, `download-jars` and `drop`: prepares a mirror, or removes a table from it; without Dagster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mirror_assets.cli.options import Exit, exit_code
from mirror_assets.cli.output import is_confirmed, note, note_errors, show, show_json, show_line
from mirror_assets.composition import compose, spark_settings_of
from mirror_assets.config.load import load_config, read_config
from mirror_assets.errors import ErrorRecord
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import is_dropped
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.units import count
from mirror_assets.pipeline.doctor import (
    DoctorAnswer,
    DoctorVerdict,
    examine_mirror,
    examine_sources,
    examine_zone,
    first_failures,
    reach,
)
from mirror_assets.pipeline.spark_sessions import no_spark
from mirror_assets.zones.probe import ResponseRecorder

_SHOWN = {
    DoctorVerdict.OK: "pass",
    DoctorVerdict.WARN: "warn",
    DoctorVerdict.NO: "FAIL",
    DoctorVerdict.NOT_ASKED: "not asked",
}


def doctor(path: Path | None, names: Sequence[str], *, with_spark: bool, thorough: bool, as_json: bool) -> Exit:
    """Examine the landing zone, in a scratch folder, and the sources of these tables, or all; print each answer.

    Ends early if the landing zone rejects all requests. Fails if an answer is no.
    """
    project = compose(load_config(path), None if with_spark else no_spark, note)
    tables, answers = project.tables(names), list[DoctorAnswer]()

    def examine() -> Iterator[DoctorAnswer]:
        recorder = ResponseRecorder()
        store = project.config.zone.open(recorder)
        note(f"Probing {store.root}")
        yield from examine_zone(store, recorder.heard)
        if recorder.versions:
            question = "which x-ms-version does it answer with?"
            yield DoctorAnswer(store.root, question, DoctorVerdict.OK, ", ".join(recorder.versions))
        yield from examine_mirror(project.config, project.store, tables)
        yield from examine_sources(tables, with_spark=with_spark, thorough=thorough)

    for one in examine():
        answers.append(one)
        if not as_json:
            show_line(f"{_SHOWN[one.verdict]:9} {one.subject}: {one.question} {one.text}")
        if one.ends:
            note("All other questions were left out: they need the landing zone. Correct this first.")
            break
    if as_json:
        show_json(answers)
    else:
        verdicts = Counter(one.verdict for one in answers)
        note(", ".join(f"{number} {_SHOWN[verdict]}" for verdict, number in verdicts.items()))
    return exit_code(one.family for one in first_failures(answers))


@dataclass(frozen=True)
class ValidTable:
    """A table that the configuration mirrors; with `--connect`, the error of a source that can't be read."""

    table: str
    source: str
    changes: str
    keys: tuple[str, ...]
    error: ErrorRecord | None = None


def validate(path: Path | None, *, connect: bool, as_json: bool) -> Exit:
    """Print the tables that the configuration mirrors; open landing zone and sources if `connect`. Raises MISTAKES."""
    config, errors = load_config(path) if connect else read_config(path), list[ErrorRecord]()
    if connect:
        project = compose(config, no_spark, needs_zone=False)
        errors = first_failures(reach(project.store, project.tables()))
    of_table = {error.table: error for error in errors}
    lines = [
        ValidTable(name := str(x.name), x.source, x.changes.value, x.keys, of_table.pop(name, None))
        for x in config.all_tables()
    ]
    rows = [(x.table, x.source, x.changes, ", ".join(x.keys)) for x in lines]
    of_zone = [replace(error, table=None) for error in of_table.values()]
    show("Tables", ("table", "source", "changes", "keys"), rows, lines, of_zone, as_json=as_json)
    for problem in (*config.unset.problems, *config.unset.in_rows):
        note(problem.at(config.file))
    into = "" if config.unset.zone_error else f", into {config.zone.root}"
    note(f"{config.file}: {count(len(lines), 'table')}{into}")
    return note_errors(errors)


def download_jars(path: Path | None, folder: Path, *, as_json: bool) -> Exit:
    """Copy the JARs of this configuration's packages into the folder. Starts Spark to resolve unknown packages."""
    from mirror_assets.encode.session import fill_jar_folder

    # The folder that spark.jars_folder names may not exist yet: it is the one to fill, on this machine or another.
    settings = replace(spark_settings_of(load_config(path)), jars_folder=None)
    jars = fill_jar_folder(folder, settings.shown())
    if as_json:
        show_json([{"folder": str(folder), "jars": [jar.name for jar in jars]}])
    else:
        note(
            f"{len(jars)} JARs are in {folder}. Set spark.jars_folder to this folder in the mirror.yaml that uses them."
        )
    return Exit.FINE


def drop(path: Path | None, name: str, *, dry_run: bool, yes: bool, as_json: bool) -> Exit:
    """Drop the table, or finish an interrupted drop. Asks first, unless `yes`."""
    from mirror_assets.pipeline.rebuild_table import drop_table, require_table  # imports Spark

    project, table = compose(load_config(path)), TableName.parse(name)
    config, store = project.config, project.store
    require_table(config, store, table)
    there = not drive(is_dropped(table), store)
    what = f"{table}: its landing files and staged parts in {store.root} are deleted; the mirror drops the table"
    if dry_run:
        if as_json:
            show_json([{"table": str(table), "dropped": False, "is_there": there, "landing_zone": store.root}])
        else:
            note(what if there else f"{table}: there is nothing to drop")
        return Exit.FINE
    if there and not yes and not is_confirmed(table, what):
        return Exit.FAILED
    drop_table(store, table, project.mirror(), note)
    if as_json:
        show_json([{"table": str(table), "dropped": there}])
    else:
        note(f"{table}: dropped" if there else f"{table}: there is nothing to drop")
    if table in config.names:
        note(f"{table} is still in {config.file}: the next run loads it again, with a snapshot")
    return Exit.FINE
