"""The command `doctor`: asks the landing zone and the sources whether mirroring can work. It needs no Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show
from mirror_assets.composition import Project, no_spark, open_watched_zone
from mirror_assets.config import LandingZoneConfig, load_config
from mirror_assets.pipeline.doctor.answers import Answer, Verdict, is_well
from mirror_assets.pipeline.doctor.examination import Depth, examine_sources, examine_zone


def doctor(path: Path | None, names: Sequence[str], depth: Depth, *, as_json: bool) -> Exit:
    """Ask the landing zone, in a scratch folder, and these tables' sources, or all; it fails when an answer is no."""
    project = Project.of(load_config(path), None if depth.with_spark else no_spark)
    tables = project.tables(names)
    answers = list(_ask_zone(project.config.landing_zone))
    note(f"Asking the sources of {len(tables)} tables")
    answers += examine_sources(tables, depth)
    rows = [(_SHOWN[one.verdict], one.subject, one.question, one.text) for one in answers]
    show("Doctor", ("", "of", "question", "answer"), rows, answers, as_json=as_json)
    return Exit.FINE if is_well(answers) else Exit.FAILED


def _ask_zone(config: LandingZoneConfig) -> Iterator[Answer]:
    store, recorder = open_watched_zone(config)
    note(f"Probing {store.root}")
    yield from examine_zone(store, recorder.heard)
    if recorder.versions:
        question = "which x-ms-version does it answer with?"
        yield Answer(store.root, question, Verdict.OK, ", ".join(recorder.versions))


_SHOWN = {Verdict.OK: "pass", Verdict.WARN: "warn", Verdict.NO: "FAIL", Verdict.NOT_ASKED: "not asked"}
