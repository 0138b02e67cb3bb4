"""Runs `doctor`, `download-jars` and `drop`: prepares a mirror, or removes a table from it; without Dagster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mirror_assets.cli.options import Exit
from mirror_assets.cli.output import note, refused, show_json, show_line
from mirror_assets.composition import compose, spark_settings_of
from mirror_assets.config.load import load_config
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import is_dropped
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.doctor import (
    DoctorAnswer,
    DoctorVerdict,
    examine_mirror,
    examine_sources,
    examine_zone,
    is_well,
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
    return Exit.FINE if is_well(answers) else Exit.FAILED


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


def drop(path: Path | None, name: str, *, yes: bool, as_json: bool) -> Exit:
    """Drop the table, or finish an interrupted drop. Asks first, unless `yes`."""
    from mirror_assets.pipeline.rebuild_table import drop_table, require_table  # imports Spark

    project, table = compose(load_config(path)), TableName.parse(name)
    config, store = project.config, project.store
    require_table(config, store, table)
    there = not drive(is_dropped(table), store)
    if there and not yes:
        what = f"{table}: its landing files and staged parts in {store.root} are deleted; the mirror drops the table"
        code = refused(table, what)
        if code is not None:
            return code
    drop_table(store, table, project.mirror(), note)
    if as_json:
        show_json([{"table": str(table), "dropped": there}])
    else:
        note(f"{table}: dropped" if there else f"{table}: there is nothing to drop")
    if table in config.names:
        note(f"{table} is still in {config.file}: the next run loads it again, with a snapshot")
    return Exit.FINE
